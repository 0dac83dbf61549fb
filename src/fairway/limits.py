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
METADATA_KEYS_MAX: Final = 32  # strategic metadata is small; what is opaque belongs in info
METADATA_KEY_BYTES_MAX: Final = 128  # keys are names
METADATA_VALUE_BYTES_MAX: Final = 512  # values are compared and indexed
INFO_BYTES_MAX: Final = 64 * 1024  # handed out with every lease of the submission
KEY_BYTES_MAX: Final = 256  # an idempotency key is an identifier
PRIORITY_MAX: Final = 2**31 - 1  # fits every store's integer; its negative is the least
OBJECT_PREFIX_BYTES_MAX: Final = 2048  # a URL
ATTEMPTS_MAX_MAX: Final = 1000  # beyond this a retry policy is a loop
ERROR_BYTES_MAX: Final = 4096  # an error text is kept for dead chunks; a traceback's tail fits

# -- payloads and results
PAYLOAD_BYTES_MAX: Final = 1024 * 1024  # one inline payload or result; larger ones belong in objects
INLINE_BYTES_MAX: Final = 32 * 1024 * 1024  # all inline payloads of one submission: they go in one group
PAGE_BYTES: Final = 8 * 1024  # about, of a page of inline payloads: read for a chunk where tenants take turns
PAGE_BYTES_MAX: Final = 64 * 1024  # about, in large submissions: more would be read for a few chunks
PAYLOAD_PAGES: Final = 64  # of a submission before its pages grow: where they begin is told with each reserve
KEPT_PAGE_BYTES_MAX: Final = 16 * 1024 * 1024  # opened pages that a queue keeps for its next reserve
PASSED_CHUNKS_MAX: Final = 256  # that one order of chunks passes over in a row: the other handed them out
PAGE_CHUNKS: Final = 65_536  # chunks in one bitmap page of what is done
SHEET_ROWS: Final = 256  # rows of winners that are stored together: 8 KiB, rewritten when a row is added

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
LIST_BYTES_MAX: Final = 16 * 1024 * 1024  # of info and metadata in one page: then it has fewer rows
RESULTS_READ_BYTES: Final = 4 * 1024 * 1024  # of results in one read; one call's, whole, has up to a group's
LIST_WALK_RUNS: Final = 1_000  # submissions in memory that a listing looks through; beyond, an index is asked

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
CLIENTS_MAX: Final = 200_000  # each of 10^4 consumers and 10^5 producers is one, with room
CONSUMERS_MAX: Final = 10_000  # named consumers, the design point
WAITERS_MAX: Final = 200_000  # 10^4 waiting consumers and 10^5 waiting producers, with room
RESERVER_SECONDS: Final = 60.0  # who reserved so lately counts as a consumer where a limit is a percentage
PLANS_MAX: Final = 64  # compiled strategies per queue; one place is kept for its own
PLANS_EXPLAINED_MAX: Final = 4  # plans beside those, made to be explained; they go when they were
PLAN_IDLE_SECONDS: Final = 600.0  # then a plan that nobody used is dropped; making it again takes a second
PLAN_STEPS: Final = 500  # additions of one slice of a new plan, while all others wait: mostly 1 to 5 ms
TIERS_MAX: Final = 64  # steps of one strategy; every PreferDistinct doubles them, and each has an index
STRATEGY_LEVELS_MAX: Final = 16  # blocks inside one another; deeper ones are not meant
IN_FLIGHT_CHUNKS_MAX: Final = 2**31 - 1  # the largest max of a limit: as many as one submission can have
PRIORITIES_MAX: Final = (
    1024  # tables of turns under CustomPriority; then those that nobody waits in are dropped
)
TABLES_RESTING_MAX: Final = 256  # tables of turns kept for strategies that no plan is made of now
TURNS_RESTING_MAX: Final = 100_000  # turns in them, about 20 MB; the tables that rest longest go first
STRATEGY_CHARS_MAX: Final = 4096  # a strategy's text form
QUEUE_NAME_BYTES_MAX: Final = 128  # a name
QUEUES_PER_FILE_MAX: Final = 1024  # the queue number has ten bits in a submission id

# -- the window over a backlog that is larger than memory
WINDOW_ROWS: Final = 200_000  # loaded rows by default: the usual queue lives in memory whole
WINDOW_ROWS_MAX: Final = 10_000_000  # more than this is a queue in memory under another name
WINDOW_BYTES_MAX: Final = 512 * 1024 * 1024  # of loaded rows; large ones make the window shorter
READ_ROWS: Final = 1000  # rows in one read of the window: taking them in holds up calls, for about 15 ms
READ_BYTES: Final = 4 * 1024 * 1024  # as READ_ROWS, for large rows
FETCHED_ROWS_MAX: Final = 10_000  # rows beside the window, for plans that find nothing in it
FETCH_ROWS: Final = 500  # rows in one page of what a plan asks the store for
UNPARK_IDS: Final = 500  # rows read by id at a time, when they are due or over
SCAN_ROWS: Final = 1000  # rows in one slice of the search for the lowest parked row
CARRY_ROWS: Final = 400  # rows carried forward in one group; a group has at most 500 on Cassandra
GC_ROWS: Final = 1000  # finished places that are given up together, by stores that delete by range
GC_SECONDS: Final = 15.0  # then also fewer
TIMES_ROWS: Final = 10_000  # due times and deadlines that are known ahead; later ones are read in time
READ_RETRY_SECONDS: Final = 0.05  # the first pause after a read of the window failed; it doubles
READ_RETRY_SECONDS_MAX: Final = 5.0  # the doubling stops here
READ_FAILS_SECONDS: Final = 5.0  # a store that fails for so long is down: who may not wait hears its error

# -- the journal between checkpoints
JOURNAL_GROUPS_MAX: Final = 512  # groups replayed at a start, at most about this many
FLUSH_OBJECTS_PER_GROUP_MIN: Final = 16  # what a group adds to its write at least to keep the journal short
TENANTS_AT_ONCE_MIN: Final = 1000  # a group that brings so many runs writes their new tenants itself
JOURNAL_TRIM_GROUPS: Final = 16  # the journal is cut once in so many: a cut dirties pages at its other end
SWEEP_ROWS_MAX: Final = 500  # ended submissions or keys removed in one group
PAYLOAD_CACHE_BYTES: Final = 64 * 1024 * 1024  # lately put, so that a reserve need not read them back

# -- the SQLite file
WAL_BYTES_MAX: Final = 64 * 1024 * 1024  # then the writer checkpoints itself; a longer log slows reads
CHECKED_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # a file up to this is checked whole whenever it is opened
BUSY_MILLISECONDS_MAX: Final = (
    10_000  # another owner's transaction takes milliseconds, its checkpoint a second
)
WRITER_CACHE_KIB: Final = 64 * 1024  # the upper pages of every tree, and the leaves that are being filled
READER_CACHE_KIB: Final = 8 * 1024  # readers come back for other rows; the kernel caches the file anyway
IDLE_READERS_MAX: Final = 4  # more connections than this are closed after use
BACKUP_STEP_PAGES: Final = 1024  # 4 MiB between two looks at how far a backup is
INLINE_PAGE_BYTES_MAX: Final = 1024  # a message is one row; larger payloads would spread the runs thin

# -- the audit
AUDIT_PAGE_CHUNKS: Final = 256  # events and pieces meet pairwise inside a page, so a page is short
AUDIT_WINDOWS_MAX: Final = 100_000  # one row each; a day has 86,400 seconds
REPORT_TENANTS_MAX: Final = 40  # the largest; a page with more is not looked at
REPORT_WINDOWS_MAX: Final = 2_000  # points of a line; a screen has no more
REPORT_FAULTS_MAX: Final = 50  # the longest; more of the same teaches nothing

# -- Cassandra
CASSANDRA_REQUEST_SECONDS: Final = (
    4.0  # twice what a node gives a write; then its outcome is read, not waited for
)
CASSANDRA_CONNECT_SECONDS: Final = 10  # a node under load takes seconds to accept
CASSANDRA_SCHEMA_SECONDS: Final = 60  # a table is made by all nodes together, seconds on busy ones
CASSANDRA_HEARTBEAT_SECONDS: Final = 3  # a paused coordinator is noticed after this time, and as much again
# Threads of the driver that connect anew: one that tries a paused node is held for CASSANDRA_CONNECT_SECONDS each time,
# and with the driver's two the nodes that do answer would wait for it.
CASSANDRA_DRIVER_THREADS: Final = 8
CASSANDRA_IN_FLIGHT_MAX: Final = 64  # requests at once of one thread; more only wait in the node's queue
CASSANDRA_BATCH_ROWS: Final = 100  # of one partition in one message; more do not go faster
CASSANDRA_BATCH_BYTES: Final = 64 * 1024  # as CASSANDRA_BATCH_ROWS, for large rows
CASSANDRA_LOG_BYTES_MAX: Final = 64 * 1024  # of a group in its fenced write; more goes before it, as pages
CASSANDRA_PAGE_BYTES: Final = 256 * 1024  # of such a page
CASSANDRA_LOG_GROUPS_MAX: Final = (
    4  # groups in the log and not yet in the tables: it bounds the fenced partition
)
CASSANDRA_RUN_SHARDS: Final = 16  # partitions of ended and active runs: 10^6 messages are 25 MB in each
CASSANDRA_LEVEL_SHARDS: Final = 4  # partitions of what is read in order; a read asks all of them
CASSANDRA_SHARD_BITS: Final = 34  # of an id below its shard: what is submitted within 4 s is in one partition
CASSANDRA_EVENTS_BITS: Final = 12  # of a group's number below its partition of events
CASSANDRA_STRETCH_IDS_MAX: Final = 250  # runs in one read by range: their small pages are 250 KiB
CASSANDRA_ENDING_IDS: Final = 500  # ended runs in one list: as many as leave in one group, SWEEP_ROWS_MAX
CASSANDRA_LIVES_IDS: Final = (
    500  # runs that end alike in one statement: 5 of 100 cost the node 3 times as much
)
CASSANDRA_PLACES_MAX: Final = (
    200_000  # active runs whose place is remembered; others are looked up when they end
)
# Rows removed by key before ranges cover them, all together of what a reload reads: half of what it may meet.
CASSANDRA_TOMBSTONES_MAX: Final = 500
CASSANDRA_RANGE_ROWS: Final = (
    100  # rows that one group removes: so many leave by ranges, which are looked for before
)
CASSANDRA_FRONT_ROWS: Final = 4  # rows before and between which a new owner covers what others removed
CASSANDRA_GAP_ROWS_MAX: Final = 5000  # rows looked at between removed ones; among more they do not matter
# Ranges between rows that stay before they are joined, all together of what a reload reads: each is met at both ends.
CASSANDRA_RANGES_MAX: Final = 50
CASSANDRA_JOIN_ROWS_MAX: Final = (
    4000  # rows written again when ranges are joined: about a quarter of a second
)
OWNER_BEAT_SECONDS: Final = 1.0  # how often an owner on Cassandra says that it is there
OWNER_SILENT_SECONDS: Final = 5.0  # five beats that did not come: it is taken over, within 10 s of its death

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

# -- Spark
JAVA_MAJOR_MIN: Final = 17  # what Spark 4 runs on
SPARK_CHUNK_ROWS: Final = (
    10_000  # rows in a chunk: tens of milliseconds of work, so that tenants can take turns
)
SPARK_LIST_ROWS: Final = 100_000  # rows of a listing in one task
SPARK_TASKS: Final = 8  # tasks in a micro-batch unless told; one costs about 35 ms
SPARK_FUNCTION_BYTES: Final = 256 * 1024  # pickled; a longer one runs behind the source
SPARK_RENEW_SECONDS: Final = (
    60.0  # how often a source says that it lives, and at least four times per silence
)
PROCESS_RESTARTS_MAX: Final = (
    200  # with no batch done: halving 10,000 chunks takes 14, then attempts count, and so on
)
# -- the ring; its C file checks the same bounds again, and has its own of bits and ticks
RING_BYTES_MIN: Final = (
    64 * 1024  # a quarter of it is the longest message; a smaller ring would be all overhead
)
RING_BYTES_MAX: Final = 64 * 1024**3  # sizes and laps share one 64-bit word
RING_BYTES: Final = 1024 * 1024  # fits into the cache of a core with its index
RING_STUCK_SECONDS: Final = 5.0  # copying a message takes microseconds; an owner this late is reported
RING_LISTEN_SECONDS: Final = 1.0  # an event loop looks again this often, should who had to wake it have died
RING_TRANSPORT_BYTES: Final = 128 * 1024  # per direction of a process; what does not fit takes the socket
RING_FRAME_BYTES_MAX: Final = 16 * 1024  # longer frames gain nothing over the socket
RING_DRAIN_BYTES_MAX: Final = 64 * 1024 * 1024  # who fills a ring faster than it is emptied floods it

# -- bucket queues
BUCKET_ROWS_MAX: Final = 2000  # a partition that is read whole by the repairer
BUCKET_BYTES_MAX: Final = 8 * 1024 * 1024  # bodies in one bucket: a partition that every store holds easily
BUCKET_BATCH_ROWS_MAX: Final = 50  # rows in one conditional batch: more cost more than they save
BUCKET_BATCH_BYTES_MAX: Final = 256 * 1024  # bodies in one put: what a batch of Cassandra carries well
BUCKET_PAYLOAD_BYTES_MAX: Final = 64 * 1024  # one message: larger ones belong in an object store
OPEN_BUCKETS_MAX: Final = 64  # buckets one node fills side by side
SEAL_SECONDS_MAX: Final = 86400.0  # a bucket that stays open for longer holds the floor for nothing
SPREAD_BUCKETS: Final = 8  # the oldest so many are where consumers spread; beyond, old messages would starve
LOOK_SLACK_ROWS: Final = 16  # rows that a look reads beyond what it wants: some are in others' hands
TAKEN_ROWS_MAX: Final = (
    10_000  # takes a node remembers for its threads; without, a take is refused now and then
)
SIGHTING_SECONDS_MAX: Final = 1.0  # how long a look at a sealed bucket counts: half of the promised 2 s
HOUR_BUCKET_SECONDS: Final = (
    3600.0  # longer delays share buckets by their hour, so that few buckets stay long
)
INDEX_PAGE_ROWS: Final = 1000  # entries of the index in one read
DEAD_PAGE_ROWS: Final = 100  # dead letters in one read, with their bodies
REPAIR_SECONDS: Final = 1.0  # between two rounds of repair, and two beats of the one who repairs
GLANCE_BUCKETS_MAX: Final = 64  # buckets that one round of repair looks at: a second or so on a busy cluster
GLANCE_SECONDS_MAX: Final = 10.0  # how late a repairer looks again at a bucket in which nothing happens
SWEEP_SECONDS: Final = 100.0  # between two sweeps of the index: under 1,000 tombstones in a day
SWEEP_AT_REST_SECONDS: Final = 10.0  # the same where nothing is left: a queue at rest is clean
REPAIRER_SILENT_SECONDS: Final = 5.0  # five beats that did not come: another repairs
BUCKET_CALL_SECONDS_MAX: Final = 60.0  # then a call whose outcome cannot be learnt says so
DELETES_MAX: Final = 100  # deletes left in the middle that a repairer goes on with; the rest follows
DELETES_SECONDS: Final = 10.0  # between two looks for them
BUCKET_CLOSE_SECONDS: Final = 2.0  # a close waits so long for the statement that the repairer is at
WAL_CHECKPOINT_PAGES: Final = 1000  # SQLite's own default: 4 MiB of log, then whoever commits copies it
BUCKET_POLL_SECONDS_MAX: Final = (
    0.25  # how often a waiting reserve looks; on a server, one for all of a process
)
LINE_MESSAGES_MAX: Final = 256  # taken by one look for several waiting callers: 16 MiB of the largest

# -- HTTP: the server
BODY_BYTES_MAX: Final = 96 * 1024 * 1024  # a full group of inline bytes in base64, and what describes it
BODIES_BYTES_MAX: Final = 256 * 1024 * 1024  # bodies that one process holds at a time; then it says Busy
BODY_SECONDS_MAX: Final = 60.0  # a whole body; who sends slower holds memory for nothing
REFUSED_BODY_BYTES_MAX: Final = 64 * 1024  # of a refused call, read so that its caller reads the answer
REFUSED_BODY_SECONDS_MAX: Final = 1.0  # and for so long; then the connection is closed
HEAD_SECONDS_MAX: Final = 10.0  # the head of a request; it fits into one packet
HEAD_BYTES_MAX: Final = 64 * 1024  # request line and headers
READER_SECONDS_MAX: Final = 30.0  # in which a reader takes some of a long answer; else it is thrown away
READER_BYTES_MIN: Final = 1024 * 1024  # that is some, or half of the rest: the longest takes an hour
KEEP_ALIVE_SECONDS: Final = 75.0  # longer than a proxy keeps its end, so that the proxy closes first
BEHIND_MAX: Final = 8  # requests that stand behind one that is being answered; then none is read
WRITE_BYTES_MAX: Final = 64 * 1024  # head and body in one write; what is longer costs more to copy
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024  # payloads in one answer; the rest is asked for again
PAGES_READ_MAX: Final = (
    256  # of payloads at a time in one process, before their bytes are known: 1 MiB at most each
)
LOOK_PAGES: Final = 64  # that a listing counts for while it is read: one call's results are as long
UNREAD_BYTES_MAX: Final = 512 * 1024 * 1024  # of answers that are built, or not read yet, in one process
CALLER_UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024  # of which one token may have half
HTTP_WAIT_SECONDS_MAX: Final = 60.0  # one long poll; proxies cut what is silent for longer
POLL_SECONDS: Final = 20.0  # a client cuts its waits into polls of this length
POLL_SECONDS_MAX: Final = (
    50.0  # and one that has waited long into these: 10^5 producers then ask 2,000 times a second
)
CALLS_MAX: Final = 1000  # calls under way in one process that do not wait
WAITS_MAX: Final = 120_000  # long polls in one process: 10^4 consumers, 10^5 producers, with room
CALLER_CALLS_MAX: Final = 500  # of which one token may have half
CALLER_WAITS_MAX: Final = 110_000  # one token may hold all the consumers and producers of the design
RESERVED_FILES_MIN: Final = (
    256  # of a process's open files, kept from connections for the store, sockets and threads
)
PATH_CHARS_MAX: Final = 1024  # of the address of a request
KEPT_NAMES_MAX: Final = 4096  # of what requests say again and again, kept as it was understood and checked
KEPT_NAME_CHARS_MAX: Final = PATH_CHARS_MAX  # nothing longer is kept, so that nobody fills the memory with it
STREAMS_MAX: Final = 1000  # event streams in one process; each looks for news every second
CALLER_STREAMS_MAX: Final = 500  # of which one token may have half
STREAM_SECONDS_MAX: Final = 3600.0  # then the client connects again, and its token is looked at anew
TOKEN_LOOK_SECONDS: Final = 1.0  # how late the wait of a token that was revoked ends
STREAM_POLL_SECONDS: Final = 1.0  # how late an event may be on a stream
RETRY_AFTER_SECONDS: Final = 1  # when a caller who was told Busy should come again
PAGE_ROWS_MAX: Final = 1000  # rows in one page of a REST listing
PAGE_ROWS: Final = 100  # and how many if the caller does not say
METRIC_TENANTS_MAX: Final = 20  # tenants with figures of their own in the metrics of a queue
METRIC_QUEUES_MAX: Final = 100  # queues with figures in the metrics; label sets are bounded
BUCKET_COUNT_SECONDS: Final = (
    5.0  # sizes of a bucket queue are kept so long at least: all of it is read for them
)
BUCKET_COUNT_REST_RATIO: Final = 10  # and so many times as long as the count took
METRIC_SECONDS: Final = 5.0  # tenants are counted anew so often at most, however often they are scraped
READY_SECONDS: Final = 2.0  # who asks /readyz hears after so long that the engine's process does not answer
GRACE_SECONDS: Final = 20.0  # a server that ends lets calls under way finish for so long
RESTART_SECONDS: Final = 0.2  # the first pause before a process that died is started again; it doubles
RESTART_SECONDS_MAX: Final = 10.0  # and the doubling stops here
RESTART_STEADY_SECONDS: Final = (
    2.0  # whoever lived so long had begun its work: the next pause is the first again
)
WORKERS_MAX: Final = 64  # HTTP processes of one server
RECEIPT_CHARS_MAX: Final = 200  # those of bucket queues name a bucket and a message, and have about 140

# -- HTTP: the dashboard
DASHBOARD_SECONDS: Final = 1.0  # between two looks at a queue that somebody watches
DASHBOARD_SLOW_SECONDS: Final = 5.0  # and with more tenants than DASHBOARD_TRACKED_TENANTS_MAX
DASHBOARD_LIST_SECONDS: Final = 2.0  # between two looks at the list of queues
DASHBOARD_LINGER_SECONDS: Final = 30.0  # a queue is looked at for so long after the last viewer left
DASHBOARD_HISTORY_SECONDS: Final = 300.0  # what the charts show; a screen has no more points
DASHBOARD_TRACKED_TENANTS_MAX: Final = 1000  # tenants with figures of their own; a page shows the top 20
DASHBOARD_GROUPS: Final = 256  # of the event log in one read
DASHBOARD_READS_MAX: Final = 4  # such reads in one look; then a part of the log is left out
DASHBOARD_SEED_GROUPS: Final = 4096  # of the log read at the first look, to draw the charts
DASHBOARD_LOOKUPS_MAX: Final = 100  # submissions whose tenant is asked for in one look
DASHBOARD_KNOWN_ROWS: Final = 20_000  # submissions whose tenant is remembered
DASHBOARD_ROWS: Final = 50  # in one page of a list
FORM_BYTES_MAX: Final = 64 * 1024  # a form of the dashboard; a strategy and a tenant fit
SESSION_SECONDS_MAX: Final = 12 * 3600.0  # a day's work; then one logs in again

# -- HTTP: several nodes on one cluster
NODE_PATIENCE_SECONDS: Final = (
    20.0  # twice what the next owner takes to be there; then the caller is told Busy
)
NODE_CONNECT_SECONDS: Final = 2.0  # nodes are near each other; one that takes longer is down
NODE_CLOCK_SECONDS_MAX: Final = 300.0  # a request that was handed on longer ago is a copy that somebody kept
NODE_SECRET_BYTES_MIN: Final = 32  # as many as the digests that are made with it
SWEEP_SLICE_SECONDS: Final = 0.5  # of removing what a deleted queue held, between two looks at the names
NODE_NAMES_SECONDS: Final = 2.0  # how often a node looks for queues that others made or deleted

# -- HTTP: tokens
TOKENS_MAX: Final = 10_000  # the file is read whole when it changed
TOKEN_NAME_CHARS_MAX: Final = 128  # a name for people
TOKEN_QUEUES_MAX: Final = 64  # patterns of one token; each is tried for each call
TOKEN_SECONDS_MAX: Final = 10 * 366 * 86400.0  # a token that outlives its machine is forgotten, not used

# -- HTTP: the client
NODES_MAX: Final = 64  # addresses of one server
CONNECT_SECONDS: Final = 5.0  # a node that takes longer is down
ANSWER_SECONDS: Final = 30.0  # a node that takes longer over its wait is asked again
CLIENT_KEEP_SECONDS: Final = 30.0  # a connection that carries nothing; the server's end is kept for longer
CLIENT_RETRY_SECONDS: Final = 60.0  # how long a call is repeated before its caller hears Unreachable
KNOCK_SECONDS: Final = 5.0  # how long a command looks for a server where nobody answers
CLIENT_PAUSE_SECONDS: Final = 0.1  # before the first repeat; it doubles
CLIENT_PAUSE_SECONDS_MAX: Final = 3.0  # and the doubling stops here
CLIENT_AFTER_SECONDS_MAX: Final = (
    20.0  # a Retry-After beyond this is not waited for: the next try may find room
)
LANES_MAX: Final = 64  # calls of one client under way at a time that do not wait
PAGES_PER_CALL_MAX: Final = 10_000  # payload pages asked for at once: one for each lease

# -- workers
WORK_PROCESSES_MAX: Final = 256  # processes of one `fairway.work`
FINAL_ERROR_BYTES_MAX: Final = 8192  # of the error that one of them leaves; a message is shorter
IDLE_SECONDS: Final = 0.5  # the first wait for work; it doubles while there is none
IDLE_SECONDS_MAX: Final = 5.0  # and the doubling stops here, so that SIGTERM is heeded in time
STOP_SECONDS: Final = (
    5.0  # a function that does not stop at its lease end in this time loses its process (of several)
)
REPORT_SECONDS: Final = 1.0  # results are told at the end of a batch, or so often
