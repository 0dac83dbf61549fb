-- Bucket queues: leaderless, many processes on one file, beside the fair queues in it.

-- A name and the generation it stands for; `changes` rises with every create and delete.
CREATE TABLE bucket_names (
    name    TEXT    PRIMARY KEY,
    current BLOB,
    changes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every generation of a name. One that is being deleted is the work list of whoever goes on with it.
CREATE TABLE bucket_queues (
    name       TEXT    NOT NULL,
    generation BLOB    NOT NULL,
    state      TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    floor      BLOB    NOT NULL,
    newest     BLOB    NOT NULL,
    config     BLOB    NOT NULL,
    secret     BLOB    NOT NULL,
    PRIMARY KEY (name, generation)
) STRICT, WITHOUT ROWID;

-- The index: places sort as time-UUIDs do.
CREATE TABLE bucket_index (
    generation BLOB NOT NULL,
    bucket     BLOB NOT NULL,
    creator    TEXT NOT NULL,
    PRIMARY KEY (generation, bucket)
) STRICT, WITHOUT ROWID;

-- How far the index of a generation was dropped: an entry below stays without effect.
CREATE TABLE bucket_index_dropped (
    generation BLOB PRIMARY KEY,
    up_to      BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- `number` stands for (generation, bucket) in the rows of a bucket.
CREATE TABLE buckets (
    number     INTEGER PRIMARY KEY,
    generation BLOB    NOT NULL,
    bucket     BLOB    NOT NULL,
    state      TEXT    NOT NULL,
    creator    TEXT    NOT NULL,
    born       REAL    NOT NULL,
    UNIQUE (generation, bucket)
) STRICT;

-- The heads of messages; what a look for due ones reads. Bodies lie apart.
CREATE TABLE bucket_rows (
    number     INTEGER NOT NULL,
    uid        BLOB    NOT NULL,
    created    REAL    NOT NULL,
    not_before REAL    NOT NULL,
    version    INTEGER NOT NULL DEFAULT 0,
    nonce      INTEGER NOT NULL DEFAULT 0,
    lease      REAL    NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    held       INTEGER NOT NULL DEFAULT 0,
    status     INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (number, uid)
) STRICT, WITHOUT ROWID;

CREATE TABLE bucket_bodies (
    number  INTEGER NOT NULL,
    uid     BLOB    NOT NULL,
    body    BLOB    NOT NULL,
    headers BLOB    NOT NULL,
    PRIMARY KEY (number, uid)
) STRICT, WITHOUT ROWID;

-- Dead letters, by message. `dropped` ones stay until their bucket goes, so that none is written twice.
CREATE TABLE bucket_dead (
    generation BLOB    NOT NULL,
    uid        BLOB    NOT NULL,
    bucket     BLOB    NOT NULL,
    dropped    INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    headers    BLOB    NOT NULL,
    created    REAL    NOT NULL,
    died       REAL    NOT NULL,
    attempts   INTEGER NOT NULL,
    error      TEXT    NOT NULL,
    PRIMARY KEY (generation, uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX bucket_dead_dropped ON bucket_dead (generation, bucket) WHERE dropped = 1;

-- Who repairs a queue.
CREATE TABLE bucket_repairers (
    name  TEXT    PRIMARY KEY,
    owner TEXT    NOT NULL,
    beat  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
