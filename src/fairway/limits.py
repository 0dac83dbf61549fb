"""Every bound of the system, unit last, with its reason.

Guards: nothing in Fairway grows without one of these; a call beyond one gets a typed error that names it.
"""

from typing import Final

# -- tenants and fairness
TENANT_BYTES_MAX: Final = 256  # a name, not a document; it stands in every event and index row
WEIGHT_MIN: Final = 0.01  # one chunk in ten thousand against the heaviest; less would be a pause
WEIGHT_MAX: Final = 100.0  # keeps a stride at 100 units or more, so the "- 1" of a newcomer stays small
PASS_MAX: Final = 2**62  # a level must fit a signed 64-bit column with room for one more stride
V_REBASE_MAX: Final = 2**61  # V and all turns are lowered long before they reach PASS_MAX

# -- submissions
CHUNKS_MAX: Final = 2**31 - 1  # chunk indexes are 32-bit in bitmap pages; 10^9 is the design point
SEGMENTS_MAX: Final = 10_000  # one per Spark task; each is looked up by bisection
METADATA_KEYS_MAX: Final = 32  # strategic metadata is small; what is opaque belongs into info
METADATA_KEY_BYTES_MAX: Final = 128  # keys are names
METADATA_VALUE_BYTES_MAX: Final = 512  # values are compared and indexed
INFO_BYTES_MAX: Final = 64 * 1024  # handed out with every lease of the submission
KEY_BYTES_MAX: Final = 256  # an idempotency key is an identifier
PRIORITY_MAX: Final = 2**31 - 1  # fits every store's integer; its negative is the least
OBJECT_PREFIX_BYTES_MAX: Final = 2048  # a URL
ATTEMPTS_MAX_MAX: Final = 1000  # beyond this a retry policy is a loop
ERROR_BYTES_MAX: Final = 4096  # an error text is kept for dead chunks; a traceback's tail fits

# -- payloads and results
PAYLOAD_BYTES_MAX: Final = 1024 * 1024  # one inline payload or result; larger ones belong into objects
INLINE_BYTES_MAX: Final = 32 * 1024 * 1024  # all inline payloads of one submission: they go in one group
PAGE_BYTES: Final = 64 * 1024  # inline payloads are stored in pages of about this size
PAGE_CHUNKS: Final = 65_536  # chunks in one bitmap page of what is done

# -- calls and groups
CALL_OFFERS_MAX: Final = 10_000  # submissions in one call; submit_many cuts longer lists by itself
RESERVE_CHUNKS_MAX: Final = 10_000  # leases in one reservation
CALL_CHUNKS_MAX: Final = 10_000  # leases in one complete, fail, renew or release
GROUP_BYTES_MAX: Final = 64 * 1024 * 1024  # inline bytes in one call; a call never spans two groups
WAIT_SECONDS_MAX: Final = 3600.0  # a long poll is not a subscription
LEASE_SECONDS_MIN: Final = 0.001  # a lease of no time would be lost before it is answered
LEASE_SECONDS_MAX: Final = 7 * 86400.0  # a lost worker must not hold a chunk for ever
DELAY_SECONDS_MAX: Final = 366 * 86400.0  # not_before, deadlines and back-offs within a year
LIST_ROWS_MAX: Final = 10_000  # rows in one page of a listing

# -- retries
RETRY_DELAY_SECONDS: Final = 1.0  # the first back-off; it doubles with every attempt
RETRY_DELAY_SECONDS_MAX: Final = 300.0  # the doubling stops here

# -- what is remembered, and for how long
RESTORED_LEASE_SECONDS: Final = 30.0  # a lease restored at a start lives at least this long, or its own time
RETENTION_SECONDS_MAX: Final = 366 * 86400.0  # finished submissions stay readable for at most a year
KEY_SECONDS: Final = 30 * 86400.0  # an idempotency key is kept this long after the end
CLIENT_SILENT_SECONDS: Final = 86400.0  # then a client and its outcomes are forgotten
CONSUMER_SILENT_SECONDS: Final = 3600.0  # then the named reservations of a consumer lapse
CONSUMER_NAME_BYTES_MAX: Final = 256  # a name
EVENT_SECONDS_MAX: Final = 366 * 86400.0  # the event log is kept for at most a year
OUTCOMES_PER_CLIENT_MAX: Final = (
    10_000  # unacknowledged calls of one client; more means it never acknowledges
)
CLIENTS_MAX: Final = 100_000  # ten per consumer at the design point of 10^4 consumers
CONSUMERS_MAX: Final = 10_000  # named consumers, the design point
WAITERS_MAX: Final = 200_000  # 10^4 waiting consumers and 10^5 waiting producers, with room
RESERVER_SECONDS: Final = 60.0  # who reserved so lately counts as a consumer where a limit is a percentage
PLANS_MAX: Final = 64  # compiled strategies per queue
TIERS_MAX: Final = 64  # steps of one strategy; every PreferDistinct doubles them, and each has an index
STRATEGY_LEVELS_MAX: Final = 16  # blocks inside one another; deeper ones are not meant
IN_FLIGHT_CHUNKS_MAX: Final = 2**31 - 1  # the largest max of a limit: as many as one submission can have
PRIORITIES_MAX: Final = (
    1024  # tables of turns under CustomPriority; then those that nobody waits in are dropped
)
STRATEGY_CHARS_MAX: Final = 4096  # a strategy's text form
QUEUE_NAME_BYTES_MAX: Final = 128  # a name
QUEUES_PER_FILE_MAX: Final = 1024  # the queue number has ten bits in a submission id

# -- the journal between checkpoints
JOURNAL_GROUPS_MAX: Final = 512  # groups replayed at a start, at most about this many
FLUSH_OBJECTS_PER_GROUP_MAX: Final = 256  # what one group adds to its write to keep the journal short
SWEEP_ROWS_MAX: Final = 500  # ended submissions or keys removed in one group
PAYLOAD_CACHE_BYTES: Final = 64 * 1024 * 1024  # lately put, so that a reserve need not read them back

# -- the SQLite file
WAL_BYTES_MAX: Final = 64 * 1024 * 1024  # then the writer checkpoints itself; a longer log slows reads
BUSY_MILLISECONDS_MAX: Final = (
    10_000  # another owner's transaction takes milliseconds, its checkpoint a second
)
WRITER_CACHE_KIB: Final = 64 * 1024  # the upper pages of every tree, and the leaves that are being filled
READER_CACHE_KIB: Final = 8 * 1024  # readers come back for other rows; the kernel caches the file anyway
IDLE_READERS_MAX: Final = 4  # more connections than this are closed after use
INLINE_PAGE_BYTES_MAX: Final = 1024  # a message is one row; larger payloads would spread the runs thin

# -- processes
FRAME_BYTES_MAX: Final = 128 * 1024 * 1024  # a call's inline bytes, and as much again for what describes them
OUTBOX_BYTES_MAX: Final = 1024 * 1024  # of answers that a process has not read; it is not read from meanwhile
OUTBOX_SECONDS_MAX: Final = 10.0  # a process that has so much to read and reads nothing is cut off
BEAT_SECONDS: Final = 0.5  # how often a host says that it is there
SILENT_SECONDS: Final = 3.0  # six beats that did not come: the host is gone or held up, and is replaced
REJOIN_SECONDS: Final = 5.0  # a live process whose connection broke may ask again; then its leases go back
ATTACHED_MAX: Final = 1000  # processes on one host, within the usual 1024 open files
OWNER_CONFIRMED_SECONDS: Final = 1.5  # half of the silence after which a host may have been replaced
STUCK_SECONDS: Final = 2.0  # a transaction lasts milliseconds; one that lasts this long has stopped
HOST_WAIT_SECONDS: Final = 30.0  # how long one who never hosts waits for a new host
DOOR_SECONDS: Final = 5.0  # the door is held for milliseconds
