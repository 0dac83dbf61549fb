-- name: read_name
-- What a name stands for.
SELECT current, changes FROM bucket_names WHERE name = ?1;

-- name: read_queues
-- Every generation of a name.
SELECT generation, state, version, floor, newest, config, secret, seal
FROM bucket_queues WHERE name = ?1;

-- name: read_queue
-- One generation.
SELECT generation, state, version, floor, newest, config, secret, seal
FROM bucket_queues WHERE name = ?1 AND generation = ?2;

-- name: stands_for
-- Whether the name stands for this generation.
SELECT 1 FROM bucket_names WHERE name = ?1 AND current = ?2;

-- name: read_deletes
-- Generations of any name that are being deleted.
SELECT name, generation FROM bucket_queues WHERE state = 'deleting' LIMIT ?1;

-- name: fair_queue
-- Whether a fair queue has this name: one name is one queue, of one kind.
SELECT 1 FROM queues WHERE name = ?1;

-- name: add_name
-- A name that nobody used yet.
INSERT OR IGNORE INTO bucket_names (name, current, changes) VALUES (?1, NULL, 0);

-- name: take_name
-- The name stands for a new generation, if it is free and nothing changed since it was read.
UPDATE bucket_names SET current = ?3, changes = changes + 1 WHERE name = ?1 AND current IS NULL AND changes = ?2;

-- name: add_generation
-- A new live generation.
INSERT INTO bucket_queues (name, generation, state, version, floor, newest, config, secret, seal)
VALUES (?1, ?2, 'live', 0, ?3, ?3, ?4, ?5, seal_of(?1, ?2, 'live', 0, ?3, ?3, ?4, ?5));

-- name: free_name
-- The name stands for nothing, if it stood for this generation.
UPDATE bucket_names SET current = NULL, changes = changes + 1 WHERE name = ?1 AND current = ?2;

-- name: configure
-- Another configuration in the place of the one that was read.
UPDATE bucket_queues
SET config = ?4, seal = seal_of(name, generation, state, version, floor, newest, ?4, secret)
WHERE name = ?1 AND generation = ?2 AND config = ?3 AND state = 'live';

-- name: move_queue
-- Another state of a generation.
UPDATE bucket_queues
SET state = ?4, version = version + 1,
    seal = seal_of(name, generation, ?4, version + 1, floor, newest, config, secret)
WHERE name = ?1 AND generation = ?2 AND state = ?3;

-- name: publish
-- A bucket may be used if the floor is below it.
UPDATE bucket_queues
SET version = version + 1, newest = ?3,
    seal = seal_of(name, generation, state, version + 1, floor, ?3, config, secret)
WHERE name = ?1 AND generation = ?2 AND state = 'live' AND floor < ?3;

-- name: move_floor
-- A higher floor, if nothing was published since the version was read.
UPDATE bucket_queues
SET version = version + 1, floor = ?4,
    seal = seal_of(name, generation, state, version + 1, ?4, newest, config, secret)
WHERE name = ?1 AND generation = ?2 AND state = 'live' AND version = ?3;

-- name: read_index
-- Entries of the index in order.
SELECT bucket, creator, due, seal FROM bucket_index
WHERE generation = ?1 AND bucket > ?2 AND bucket <= ?3 ORDER BY bucket LIMIT ?4;

-- name: index_dropped
-- Up to where the index was dropped.
SELECT up_to, seal FROM bucket_index_dropped WHERE generation = ?1;

-- name: unlisted
-- A bucket in a part of the index that holds messages and has no entry.
SELECT b.bucket FROM buckets b
WHERE b.generation = ?1 AND b.bucket > ?2 AND b.bucket <= ?3
  AND NOT EXISTS (SELECT 1 FROM bucket_index i WHERE i.generation = b.generation AND i.bucket = b.bucket)
  AND EXISTS (SELECT 1 FROM bucket_rows r WHERE r.number = b.number)
LIMIT 1;

-- name: add_index
-- A bucket enters the index, unless it was dropped up to there.
INSERT OR IGNORE INTO bucket_index (generation, bucket, creator, due, seal)
SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (
    SELECT 1 FROM bucket_index_dropped WHERE generation = ?1 AND up_to >= ?2
);

-- name: drop_index
-- Entries up to a bucket go.
DELETE FROM bucket_index WHERE generation = ?1 AND bucket <= ?2;

-- name: mark_index
-- From now on entries up to a bucket are without effect.
INSERT INTO bucket_index_dropped (generation, up_to, seal) VALUES (?1, ?2, seal_of(?1, ?2))
ON CONFLICT (generation) DO UPDATE
SET up_to = max(up_to, excluded.up_to), seal = seal_of(generation, max(up_to, excluded.up_to));

-- name: create_bucket
-- An open bucket, if there is none of this id.
INSERT OR IGNORE INTO buckets (generation, bucket, state, creator, born, seal) VALUES (?1, ?2, 'open', ?3, ?4, ?5);

-- name: bucket
-- A bucket without its rows.
SELECT number, state, creator, born, seal FROM buckets WHERE generation = ?1 AND bucket = ?2;

-- name: bucket_itself
-- Whether there is a bucket that its index does not show.
SELECT 1 FROM buckets NOT INDEXED WHERE generation = ?1 AND bucket = ?2;

-- name: move_bucket
-- Another state of a bucket.
UPDATE buckets SET state = ?4, seal = seal_of(generation, bucket, ?4, creator, born)
WHERE generation = ?1 AND bucket = ?2 AND state = ?3;

-- name: remove_bucket
-- A bucket goes if it is done; its number says whose rows go with it.
DELETE FROM buckets WHERE generation = ?1 AND bucket = ?2 AND state = 'done' RETURNING number;

-- name: remove_rows
-- The rows of a removed bucket.
DELETE FROM bucket_rows WHERE number = ?1;

-- name: remove_bodies
-- The bodies of a removed bucket.
DELETE FROM bucket_bodies WHERE number = ?1;

-- name: forget_dropped
-- Dropped dead letters of a removed bucket need not be remembered.
DELETE FROM bucket_dead WHERE generation = ?1 AND bucket = ?2 AND dropped = 1;

-- name: put_row
-- A message, unless it is there.
INSERT OR IGNORE INTO bucket_rows
    (number, uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal)
VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0, 0, '', ?5);

-- name: put_body
-- The body of a message.
INSERT INTO bucket_bodies (number, uid, body, headers, seal) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: count_bodies
-- How many messages of a bucket have a body: those that are not finished.
SELECT count(*) FROM bucket_bodies WHERE number = ?1;

-- name: rows
-- All heads of a bucket in order.
SELECT uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal, mark IS mark_now
FROM bucket_rows WHERE number = ?1 ORDER BY uid;

-- name: sums
-- Sums over the rows of a bucket, whatever happens to one changes them; how many have bodies, and are damaged.
SELECT count(*), max(created), coalesce(sum(version), 0), coalesce(sum(status <> 0), 0), coalesce(sum(status), 0),
       coalesce(max(attempts), 0), coalesce(sum(status IN (0, 2)), 0), coalesce(sum(mark IS NOT mark_now), 0)
FROM bucket_rows WHERE number = ?1;

-- name: row
-- One head.
SELECT uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal, mark IS mark_now
FROM bucket_rows WHERE number = ?1 AND uid = ?2;

-- name: row_itself
-- Whether there is a head that is not found by its key, since one near it is damaged: it is looked for one by one.
SELECT 1 FROM bucket_rows WHERE number = ?1 AND +uid = ?2;

-- name: row_with_body
-- One head, and its body if it has one.
SELECT r.uid, created, not_before, version, nonce, lease, attempts, held, status, error, r.seal, mark IS mark_now,
       b.body, b.headers, b.seal
FROM bucket_rows r LEFT JOIN bucket_bodies b ON b.number = ?1 AND b.uid = ?2
WHERE r.number = ?1 AND r.uid = ?2;

-- name: due
-- Heads of messages that may be delivered now, and damaged ones.
SELECT uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal, mark IS mark_now
FROM bucket_rows
WHERE number = ?1 AND uid > ?5
  AND (status = 0 AND attempts < ?2 AND max(not_before, lease) <= ?3 OR mark IS NOT mark_now)
ORDER BY uid LIMIT ?4;

-- name: next_due
-- When the next message of a bucket may be delivered; how many have bodies, and are damaged.
SELECT min(max(not_before, lease)) FILTER (WHERE status = 0 AND attempts < ?2 AND max(not_before, lease) > ?3),
       coalesce(sum(status IN (0, 2)), 0), coalesce(sum(mark IS NOT mark_now), 0)
FROM bucket_rows WHERE number = ?1;

-- name: tally
-- How many rows are ready, delayed, leased, dying, finished; how many have bodies, and are damaged.
SELECT total(status = 0 AND max(not_before, lease) <= ?2),
       total(status = 0 AND max(not_before, lease) > ?2 AND NOT (held AND lease > ?2)),
       total(status = 0 AND held AND lease > ?2),
       total(status = 2),
       total(status IN (1, 3)), total(status IN (0, 2)), total(mark IS NOT mark_now)
FROM bucket_rows WHERE number = ?1;

-- name: take
-- Lease a row, if it has its version and waits.
UPDATE bucket_rows SET version = version + 1, nonce = ?4, lease = ?5, attempts = ?6, held = 1
WHERE number = ?1 AND uid = ?2 AND version = ?3 AND status = 0 AND mark = mark_now;

-- name: finish
-- Complete a row by its receipt.
UPDATE bucket_rows SET status = 1, nonce = ?5
WHERE number = ?1 AND uid = ?2 AND version = ?3 AND nonce = ?4 AND status = 0 AND mark = mark_now;

-- name: hold
-- Hold a row longer, or give it back, by its receipt.
UPDATE bucket_rows SET version = version + 1, nonce = ?5, lease = ?6, held = ?7, attempts = ?8, error = ?9, seal = ?10
WHERE number = ?1 AND uid = ?2 AND version = ?3 AND nonce = ?4 AND status = 0 AND mark = mark_now;

-- name: doom
-- A row is to die; a nonce of 0 is not compared.
UPDATE bucket_rows SET version = version + 1, nonce = ?5, status = 2, error = ?6, seal = ?7
WHERE number = ?1 AND uid = ?2 AND version = ?3 AND (?4 = 0 OR nonce = ?4) AND status = 0 AND mark = mark_now;

-- name: bury
-- A dying row is dead.
UPDATE bucket_rows SET status = 3 WHERE number = ?1 AND uid = ?2 AND status = 2 AND mark = mark_now;

-- name: drop_body
-- The body of a finished row is not needed any more.
DELETE FROM bucket_bodies WHERE number = ?1 AND uid = ?2;

-- name: add_dead
-- A dead letter, once: not if it is there, nor if it was dropped, nor if its generation is gone.
INSERT OR IGNORE INTO bucket_dead
    (generation, uid, bucket, dropped, body, headers, created, died, attempts, error, seal)
SELECT ?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10
WHERE EXISTS (SELECT 1 FROM buckets WHERE generation = ?1 AND bucket = ?3);

-- name: drop_dead
-- A dead letter goes; that it was there is remembered as long as its bucket is.
UPDATE bucket_dead
SET dropped = 1, body = x'', headers = x'', died = 0, error = '',
    seal = seal_of(generation, uid, bucket, 1, x'', x'', created, 0.0, attempts, '')
WHERE generation = ?1 AND uid = ?2 AND dropped = 0;

-- name: count_letters
-- So many dead letters more.
INSERT INTO bucket_letters (generation, many, seal) VALUES (?1, ?2, seal_of(?1, ?2))
ON CONFLICT (generation) DO UPDATE
SET many = many + excluded.many, seal = seal_of(generation, many + excluded.many);

-- name: letters
-- How many dead letters there should be.
SELECT many, seal FROM bucket_letters WHERE generation = ?1;

-- name: drop_letters
-- A deleted generation has no dead letters.
DELETE FROM bucket_letters WHERE generation = ?1;

-- name: count_dead
-- How many dead letters there are.
SELECT count(*) FROM bucket_dead WHERE generation = ?1 AND dropped = 0;

-- name: forget_dead
-- A dropped dead letter whose bucket is removed.
DELETE FROM bucket_dead
WHERE generation = ?1 AND uid = ?2 AND dropped = 1 AND NOT EXISTS (
    SELECT 1 FROM buckets b WHERE b.generation = ?1 AND b.bucket = bucket_dead.bucket
);

-- name: drop_index_whole
-- The index of a deleted generation.
DELETE FROM bucket_index WHERE generation = ?1;

-- name: drop_dead_whole
-- The dead letters of a deleted generation.
DELETE FROM bucket_dead WHERE generation = ?1;

-- name: read_dead
-- Dead letters in order, and what contradicts itself.
SELECT uid, bucket, body, headers, created, died, attempts, error, seal
FROM bucket_dead WHERE generation = ?1 AND uid > ?2 AND (dropped = 0 OR died <> 0) ORDER BY uid LIMIT ?3;

-- name: read_repairer
-- Who repairs a queue.
SELECT owner, beat FROM bucket_repairers WHERE name = ?1;

-- name: first_beat
-- Nobody repaired this queue yet.
INSERT OR IGNORE INTO bucket_repairers (name, owner, beat) VALUES (?1, '', 0);

-- name: beat
-- This one repairs now, if owner and beat are what was read.
UPDATE bucket_repairers SET owner = ?2, beat = beat + 1 WHERE name = ?1 AND owner = ?3 AND beat = ?4;
