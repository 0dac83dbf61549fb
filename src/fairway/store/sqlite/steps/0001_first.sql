-- The first schema of a Fairway file.
-- A submission id holds its queue's number, so tables keyed by id need no queue column.

-- One row per queue: the fence (range_id, number), and what the engine keeps as its meta body.
-- `burnt` is the last number that was burnt by settling; it tells a burnt number from a stored group.
-- `settled` counts the settlings: SQLite writes, and syncs, nothing for an update that changes nothing.
CREATE TABLE queues (
    queue    INTEGER PRIMARY KEY CHECK (queue BETWEEN 0 AND 1023),
    name     TEXT    NOT NULL UNIQUE,
    range_id INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    burnt    INTEGER NOT NULL,
    settled  INTEGER NOT NULL,
    meta     BLOB    NOT NULL
) STRICT;

-- A submission as it was submitted; ids ascend, so inserts go to the end of the tree.
-- It is never rewritten when the submission ends: an update would dirty a page full of payloads.
-- `metadata` is msgpack, NULL if empty: a purge must find the lookup rows. `page` is the first payload page if small.
CREATE TABLE runs (
    id       INTEGER PRIMARY KEY,
    pass     INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    due      REAL    NOT NULL,
    metadata BLOB,
    body     BLOB    NOT NULL,
    page     BLOB
) STRICT;

-- The active runs in level order.
CREATE TABLE levels (
    queue INTEGER NOT NULL,
    pass  INTEGER NOT NULL,
    id    INTEGER NOT NULL,
    PRIMARY KEY (queue, pass, id)
) STRICT, WITHOUT ROWID;

-- The ended runs, in the order they ended: appends, whatever the order of their ids.
CREATE TABLE ends (
    place  INTEGER PRIMARY KEY,
    queue  INTEGER NOT NULL,
    id     INTEGER NOT NULL,
    tenant TEXT    NOT NULL,
    state  TEXT    NOT NULL,
    at     REAL    NOT NULL,
    failed INTEGER NOT NULL,
    body   BLOB    NOT NULL
) STRICT;

-- Carries tenant and state so that listings are filtered without touching a row. An index by tenant
-- would dirty one page per tenant and group, and more than double the price of an end.
CREATE INDEX ends_by_id ON ends (queue, id, tenant, state);
CREATE INDEX ends_by_time ON ends (queue, at, id);
CREATE INDEX ends_failed ON ends (queue, id) WHERE failed > 0;

-- Lookup by metadata in every state. `value` has no type: the text '1' and the integer 1 are two values.
CREATE TABLE metadata (
    queue INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    value ANY     NOT NULL,
    id    INTEGER NOT NULL,
    PRIMARY KEY (queue, key, value, id)
) STRICT, WITHOUT ROWID;

-- Payload pages that are not inside their run.
CREATE TABLE pages (
    id   INTEGER NOT NULL,
    page INTEGER NOT NULL,
    body BLOB    NOT NULL,
    PRIMARY KEY (id, page)
) STRICT, WITHOUT ROWID;

-- Inline results; `number` is the group that brought them.
CREATE TABLE results (
    id     INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body   BLOB    NOT NULL,
    PRIMARY KEY (id, first, number)
) STRICT, WITHOUT ROWID;

-- Small objects that are rewritten whole. `key` is a text or an integer.
CREATE TABLE objects (
    queue INTEGER NOT NULL,
    kind  INTEGER NOT NULL,
    key   ANY     NOT NULL,
    part  INTEGER NOT NULL,
    body  BLOB    NOT NULL,
    PRIMARY KEY (queue, kind, key, part)
) STRICT, WITHOUT ROWID;

-- Idempotency keys; `expires` is 0 while the submission is active.
CREATE TABLE keys (
    queue       INTEGER NOT NULL,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    id          INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL,
    expires     REAL    NOT NULL,
    PRIMARY KEY (queue, tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_expiry ON keys (queue, expires, tenant, key) WHERE expires > 0;

-- One row per group. `place` is queue << 48 | group number: a plain row id keeps long bodies in few pages.
CREATE TABLE journal (
    place INTEGER PRIMARY KEY,
    body  BLOB NOT NULL
) STRICT;

CREATE TABLE events (
    place INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    time  REAL    NOT NULL,
    body  BLOB    NOT NULL
) STRICT;
CREATE INDEX events_by_time ON events (queue, time);
