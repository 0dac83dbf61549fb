-- Rows of bucket queues are sealed: `seal` is the checksum of the other values of a row (seals.py). Rows that are there
-- get theirs here: each of them is still to be told, and a row without a seal could tell anything.

-- The numbers of a head change often, and SQL chooses by them, so SQL itself finds the rows that are damaged. `mark` is
-- stored with every change, `mark_now` is what it should be: any number that turned into another one makes another sum.
-- A time is a whole number of 2^-22 s, which is exact after 2004. What may be large is taken modulo a prime, of which
-- no power of two is a multiple, so that the sum stays in 63 bits. Its last term is 1 as long as all are numbers.
CREATE TABLE bucket_heads (
    number     INTEGER NOT NULL,
    uid        BLOB    NOT NULL,
    created    REAL    NOT NULL,
    not_before REAL    NOT NULL,
    version    INTEGER NOT NULL,
    nonce      INTEGER NOT NULL,
    lease      REAL    NOT NULL,
    attempts   INTEGER NOT NULL,
    held       INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    error      TEXT    NOT NULL,
    seal       INTEGER NOT NULL, -- over uid and error
    mark       INTEGER NOT NULL AS (
        number + 3 * version + 5 * attempts + 7 * held + 11 * status + seal + nonce % 2147483647
        + CAST(created * 4194304 AS INTEGER) % 288230376151711717
        + 3 * (CAST(not_before * 4194304 AS INTEGER) % 288230376151711717)
        + 5 * (CAST(lease * 4194304 AS INTEGER) % 288230376151711717)
        + (max(number, created, not_before, version, nonce, lease, attempts, held, status) < '')
    ) STORED,
    mark_now   INTEGER AS (
        number + 3 * version + 5 * attempts + 7 * held + 11 * status + seal + nonce % 2147483647
        + CAST(created * 4194304 AS INTEGER) % 288230376151711717
        + 3 * (CAST(not_before * 4194304 AS INTEGER) % 288230376151711717)
        + 5 * (CAST(lease * 4194304 AS INTEGER) % 288230376151711717)
        + (max(number, created, not_before, version, nonce, lease, attempts, held, status) < '')
    ) VIRTUAL,
    PRIMARY KEY (number, uid)
) STRICT, WITHOUT ROWID;
INSERT INTO bucket_heads
    (number, uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal)
SELECT number, uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal_of(uid, error)
FROM bucket_rows;
DROP TABLE bucket_rows;
ALTER TABLE bucket_heads RENAME TO bucket_rows;

-- A message has a body as long as it is not finished, and only then: a head that nobody finds any more is missed.
ALTER TABLE bucket_bodies ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
DELETE FROM bucket_bodies WHERE EXISTS (
    SELECT 1 FROM bucket_rows r
    WHERE r.number = bucket_bodies.number AND r.uid = bucket_bodies.uid AND r.status IN (1, 3)
);
UPDATE bucket_bodies SET seal = seal_of(number, uid, body, headers);

ALTER TABLE buckets ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
UPDATE buckets SET seal = seal_of(generation, bucket, state, creator, born);

ALTER TABLE bucket_index ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
UPDATE bucket_index SET seal = seal_of(generation, bucket, creator, due);

-- What was dropped has no time of death any more: `dropped` is told twice.
ALTER TABLE bucket_dead ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
UPDATE bucket_dead SET died = 0 WHERE dropped = 1;
UPDATE bucket_dead
SET seal = seal_of(generation, uid, bucket, dropped, body, headers, created, died, attempts, error);

-- Nothing else would miss a dead letter, so they are counted.
CREATE TABLE bucket_letters (
    generation BLOB    PRIMARY KEY,
    many       INTEGER NOT NULL,
    seal       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO bucket_letters (generation, many, seal)
SELECT generation, count(*), seal_of(generation, count(*)) FROM bucket_dead WHERE dropped = 0 GROUP BY generation;

ALTER TABLE bucket_queues ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
UPDATE bucket_queues SET seal = seal_of(name, generation, state, version, floor, newest, config, secret);

ALTER TABLE bucket_index_dropped ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
UPDATE bucket_index_dropped SET seal = seal_of(generation, up_to);
