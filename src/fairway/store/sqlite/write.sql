-- name: claim
-- The condition of every group: this owner, this number. It changes one row, or the group is refused.
UPDATE queues SET number = ?3, meta = ?4 WHERE queue = ?1 AND range_id = ?2 AND number = ?3 - 1;

-- name: take_over
-- A new owner; every former one is refused from now on. A deleted queue, whose name no queue can have, gets none.
UPDATE queues SET range_id = range_id + 1 WHERE queue = ?1 AND name >= '!' RETURNING range_id, number, meta;

-- name: burn
-- An empty group in the place of one that is not stored, so that it never will be.
UPDATE queues SET number = ?2, burnt = ?2, settled = settled + 1 WHERE queue = ?1;

-- name: confirm
-- A write with which the log is synced up to the group that was found stored.
UPDATE queues SET settled = settled + 1 WHERE queue = ?1;

-- name: fence
-- The stored fence of a queue.
SELECT range_id, number, burnt FROM queues WHERE queue = ?1;

-- name: find_queue
-- The number of a queue by its name.
SELECT queue FROM queues WHERE name = ?1;

-- name: bucket_queue
-- Whether a bucket queue has this name: one name is one queue, of one kind.
SELECT 1 FROM bucket_names WHERE name = ?1 AND current IS NOT NULL;

-- name: add_queue
-- A new queue takes the number after the highest, as long as there is one.
INSERT INTO queues (queue, name, range_id, number, burnt, settled, meta)
SELECT next, ?1, 0, 0, 0, 0, x'' FROM (SELECT coalesce(max(queue) + 1, 0) AS next FROM queues) WHERE next < ?2
RETURNING queue;

-- name: insert_run
-- A submission, whole, with its first payload page if that is small.
INSERT INTO runs (id, pass, tenant, due, metadata, body, page, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_message
-- The same for the usual message, without metadata and deadline.
INSERT INTO runs (id, pass, tenant, due, body, page) VALUES (?, ?, ?, ?, ?, ?);

-- name: insert_level
-- A run takes its place among the active ones.
INSERT INTO levels (queue, pass, id, tenant) SELECT ?1, ?2, id, tenant FROM runs WHERE id = ?3;

-- name: any_between
-- Whether a run of any queue has an id from one to another.
SELECT 1 FROM runs WHERE id BETWEEN ? AND ? LIMIT 1;

-- name: place_between
-- The runs from one id to another take the places that their rows name.
INSERT INTO levels (queue, pass, id, tenant) SELECT ?1, pass, id, tenant FROM runs WHERE id BETWEEN ?2 AND ?3;

-- name: place_each
-- The runs of a JSON list take the places that their rows name.
INSERT INTO levels (queue, pass, id, tenant)
SELECT ?1, r.pass, r.id, r.tenant FROM json_each(?2) CROSS JOIN runs r ON r.id = json_each.value;

-- name: delete_level
-- A run leaves its place.
DELETE FROM levels WHERE (queue, pass, id) IN (VALUES (?, ?, ?));

-- name: where
-- The pass of a run, and whether it is active.
SELECT r.pass, NOT EXISTS (SELECT 1 FROM ends e WHERE e.queue = ?1 AND e.id = r.id) FROM runs r WHERE r.id = ?2;

-- name: insert_page
-- A payload page that is too large to live inside its run.
INSERT INTO pages (id, page, body) VALUES (?, ?, ?);

-- name: insert_metadata
-- One pair of a run's metadata, for lookups.
INSERT INTO metadata (queue, key, value, id) VALUES (?, ?, ?, ?);

-- name: insert_end
-- A run that ended, with the tenant it was submitted for.
INSERT INTO ends (queue, id, tenant, state, at, failed, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: delete_end
-- A run is no longer ended: it lives again.
DELETE FROM ends WHERE queue = ? AND id = ?;

-- name: move_run
-- The new pass of a run.
UPDATE runs SET pass = ? WHERE id = ?;

-- name: put_key
-- An idempotency key, new or changed.
INSERT INTO keys (queue, tenant, key, id, fingerprint, expires) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, tenant, key) DO UPDATE
SET id = excluded.id, fingerprint = excluded.fingerprint, expires = excluded.expires;

-- name: purge_key
-- A key whose time is over; one of an active submission is never removed.
DELETE FROM keys WHERE queue = ? AND tenant = ? AND key = ? AND expires > 0;

-- name: insert_result
-- A page of inline results.
INSERT INTO results (id, first, number, body) VALUES (?, ?, ?, ?);

-- name: put_object
-- The whole present state of a small object.
INSERT INTO objects (queue, kind, key, part, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (queue, kind, key, part) DO UPDATE SET body = excluded.body;

-- name: drop_object
-- A small object that is gone.
DELETE FROM objects WHERE queue = ? AND kind = ? AND key = ? AND part = ?;

-- name: insert_journal
-- The journal entry of a group.
INSERT INTO journal (place, body) VALUES (?, ?);

-- name: trim_journal
-- Journal entries below the floor.
DELETE FROM journal WHERE place >= ? AND place < ?;

-- name: insert_events
-- The event batch of a group.
INSERT INTO events (place, queue, time, body) VALUES (?, ?, ?, ?);

-- name: purge_events
-- Event batches from before a time.
DELETE FROM events WHERE queue = ? AND time < ?;

-- name: ended_among
-- Which runs of a JSON list have ended, and the metadata whose lookup rows go with them.
SELECT r.id, r.metadata FROM json_each(?2) w
CROSS JOIN ends e INDEXED BY ends_by_id ON e.queue = ?1 AND e.id = w.value
CROSS JOIN runs r ON r.id = w.value;

-- name: delete_ends
-- The ends of a JSON list of runs that leave for good.
DELETE FROM ends WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2));

-- name: delete_runs
-- The runs themselves.
DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: delete_pages
-- Their payload pages.
DELETE FROM pages WHERE id IN (SELECT value FROM json_each(?1));

-- name: delete_results
-- Their results.
DELETE FROM results WHERE id IN (SELECT value FROM json_each(?1));

-- name: delete_run_objects
-- Their small objects of one kind.
DELETE FROM objects WHERE queue = ?1 AND kind = ?2 AND key IN (SELECT value FROM json_each(?3));

-- name: delete_metadata
-- One lookup row of such a run.
DELETE FROM metadata WHERE queue = ? AND key = ? AND value = ? AND id = ?;
