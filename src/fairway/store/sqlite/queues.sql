-- name: names
-- The queues of the file with their numbers; what was deleted has a name that no queue can have.
SELECT name, queue FROM queues WHERE name >= '!' ORDER BY name;

-- name: has_buckets
-- Whether the file knows bucket queues; one of an older Fairway does not until it is opened.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'bucket_names';

-- name: bucket_names
-- The bucket queues of the file, and whether there is what each name stands for.
SELECT n.name, q.name IS NOT NULL
FROM bucket_names n LEFT JOIN bucket_queues q ON q.name = n.name AND q.generation = n.current
WHERE n.current IS NOT NULL ORDER BY n.name;

-- name: bury
-- A deleted queue keeps its number, so that no other ever has it; every owner is refused from now on.
UPDATE queues SET name = char(1) || queue, range_id = range_id + 1, meta = x'' WHERE name = ?1 RETURNING queue;

-- name: buried
-- The numbers of deleted queues.
SELECT queue FROM queues WHERE name < '!' ORDER BY name;

-- name: some_ids
-- Some submissions of a queue that are still there.
SELECT id FROM levels WHERE queue = ?1
UNION ALL SELECT id FROM ends WHERE queue = ?1 LIMIT ?2;

-- name: remove_runs
-- Submissions of a JSON list.
DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: remove_pages
-- And their payloads.
DELETE FROM pages WHERE id IN (SELECT value FROM json_each(?1));

-- name: remove_results
-- And their results.
DELETE FROM results WHERE id IN (SELECT value FROM json_each(?1));

-- name: remove_levels
-- And their places.
DELETE FROM levels WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2));

-- name: remove_ends
-- And their ends.
DELETE FROM ends WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2));

-- name: remove_metadata
-- The lookup rows of a queue.
DELETE FROM metadata WHERE queue = ?1;

-- name: remove_objects
-- The small objects of a queue.
DELETE FROM objects WHERE queue = ?1;

-- name: remove_keys
-- The idempotency keys of a queue.
DELETE FROM keys WHERE queue = ?1;

-- name: remove_events
-- The event log of a queue.
DELETE FROM events WHERE queue = ?1;

-- name: remove_journal
-- The journal of a queue lies between two places.
DELETE FROM journal WHERE place >= ?1 AND place < ?2;
