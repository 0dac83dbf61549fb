-- name: meta
-- What an owner would start from, read without becoming one.
SELECT queue, range_id, number, meta FROM queues WHERE name = ?1;

-- name: last_number
-- The number of the last stored group.
SELECT number FROM queues WHERE queue = ?1;

-- name: active
-- The active runs in level order, without their pages; no body if a run is not what its place says.
SELECT l.id, l.pass, l.tenant, r.body
FROM levels l LEFT JOIN runs r ON r.id = l.id AND r.pass = l.pass AND r.tenant = l.tenant
WHERE l.queue = ?1 ORDER BY l.pass, l.id;

-- name: objects
-- All small objects of a kind: integer keys first, then texts.
SELECT key, part, body FROM objects WHERE queue = ?1 AND kind = ?2 ORDER BY key, part;

-- name: objects_of
-- The small objects of a kind that one key has.
SELECT key, part, body FROM objects WHERE queue = ?1 AND kind = ?2 AND key = ?3 ORDER BY part;

-- name: above
-- Active runs in places above one level and at most at another, in level order, with their progress; no body if a run
-- is not what its place says.
-- The plus takes the type from the id: keys of any type would else be converted before each compare, past the index.
SELECT l.id, l.pass, l.tenant, r.body, o.body
FROM levels l LEFT JOIN runs r ON r.id = l.id AND r.pass = l.pass AND r.tenant = l.tenant
LEFT JOIN objects o ON o.queue = ?1 AND o.kind = 3 AND o.key = +l.id AND o.part = 0
WHERE l.queue = ?1 AND (l.pass, l.id) > (?2, ?3) AND (l.pass, l.id) <= (?4, ?5) AND (?6 IS NULL OR l.tenant = ?6)
ORDER BY l.pass, l.id LIMIT ?7;

-- name: listed
-- Active runs in id order, with their progress.
SELECT r.id, r.pass, r.tenant, r.body, o.body
FROM runs r CROSS JOIN levels l ON l.queue = ?1 AND l.pass = r.pass AND l.id = r.id
LEFT JOIN objects o ON o.queue = ?1 AND o.kind = 3 AND o.key = +r.id AND o.part = 0
WHERE r.id > ?2 AND (?3 IS NULL OR r.tenant = ?3)
ORDER BY r.id LIMIT ?4;

-- name: listed_with
-- Active runs that have one pair of metadata, in id order; further pairs are compared by the reader.
SELECT r.id, r.pass, r.tenant, r.body, o.body, r.metadata
FROM metadata m CROSS JOIN runs r ON r.id = m.id
CROSS JOIN levels l ON l.queue = ?1 AND l.pass = r.pass AND l.id = r.id
LEFT JOIN objects o ON o.queue = ?1 AND o.kind = 3 AND o.key = +r.id AND o.part = 0
WHERE m.queue = ?1 AND m.key = ?4 AND m.value = ?5 AND m.id > ?2 AND (?3 IS NULL OR r.tenant = ?3)
ORDER BY m.id;

-- name: times_due
-- When active runs are due, after a time and id.
SELECT r.due, r.id FROM runs r CROSS JOIN levels l ON l.queue = ?1 AND l.pass = r.pass AND l.id = r.id
WHERE r.due > 0 AND (r.due, r.id) > (?2, ?3) ORDER BY r.due, r.id LIMIT ?4;

-- name: times_deadline
-- When active runs are over, after a time and id.
SELECT r.deadline, r.id FROM runs r CROSS JOIN levels l ON l.queue = ?1 AND l.pass = r.pass AND l.id = r.id
WHERE r.deadline > 0 AND (r.deadline, r.id) > (?2, ?3) ORDER BY r.deadline, r.id LIMIT ?4;

-- name: object
-- One small object.
SELECT body FROM objects WHERE queue = ?1 AND kind = ?2 AND key = ?3 AND part = ?4;

-- name: journal
-- The journal of a queue in order; places below and at the bounds are other queues'.
SELECT place, body FROM journal WHERE place >= ?1 AND place < ?2 ORDER BY place;

-- name: run
-- One run, active with its progress or ended.
SELECT r.id, r.pass, r.tenant, r.body, e.state, e.body, o.body
FROM runs r LEFT JOIN ends e ON e.queue = ?1 AND e.id = r.id
LEFT JOIN objects o ON e.id IS NULL AND o.queue = ?1 AND o.kind = 3 AND o.key = +r.id AND o.part = 0
WHERE r.id = ?2;

-- name: ended
-- Ended runs in id order; filtered inside the index, so only what matches is read.
SELECT r.id, r.pass, r.tenant, r.body, e.state, e.body
FROM (SELECT id, place FROM ends INDEXED BY ends_by_id
      WHERE queue = ?1 AND id > ?2 AND (?3 = '' OR state = ?3) AND (?4 IS NULL OR tenant = ?4)
      ORDER BY id LIMIT ?5) f
CROSS JOIN ends e ON e.place = f.place
CROSS JOIN runs r ON r.id = f.id
ORDER BY f.id;

-- name: ended_with
-- Ended runs that have one pair of metadata, in id order; further pairs are compared by the reader.
SELECT r.id, r.pass, r.tenant, r.body, e.state, e.body, r.metadata
FROM metadata m
CROSS JOIN ends e INDEXED BY ends_by_id ON e.queue = m.queue AND e.id = m.id
CROSS JOIN runs r ON r.id = m.id
WHERE m.queue = ?1 AND m.key = ?5 AND m.value = ?6 AND m.id > ?2
AND (?3 = '' OR e.state = ?3) AND (?4 IS NULL OR e.tenant = ?4)
ORDER BY m.id;

-- name: ended_before
-- When runs ended before a time, after a time and id, oldest first.
SELECT at, id FROM ends WHERE queue = ?1 AND at < ?2 AND (at, id) > (?4, ?5) ORDER BY at, id LIMIT ?3;

-- name: ended_failed
-- Ended runs with dead chunks, in id order.
SELECT r.id, r.pass, r.tenant, r.body, e.state, e.body
FROM ends e CROSS JOIN runs r ON r.id = e.id
WHERE e.queue = ?1 AND e.failed > 0 AND e.id > ?2 ORDER BY e.id LIMIT ?3;

-- name: inline_pages
-- The first payload page of each run of a JSON list, if it lives inside it.
SELECT id, page FROM runs WHERE id IN (SELECT value FROM json_each(?1)) AND page IS NOT NULL;

-- name: page
-- A payload page outside its run.
SELECT id, page, body FROM pages WHERE id = ? AND page = ?;

-- name: results
-- Result pages of a submission from an index on.
SELECT id, first, body FROM results WHERE id = ?1 AND first >= ?2 ORDER BY first, number LIMIT ?3;

-- name: key
-- An idempotency key.
SELECT tenant, key, id, fingerprint, expires FROM keys WHERE queue = ?1 AND tenant = ?2 AND key = ?3;

-- name: keys_expired
-- Keys whose time is over, oldest first.
SELECT tenant, key FROM keys WHERE queue = ?1 AND expires > 0 AND expires < ?2
ORDER BY expires, tenant, key LIMIT ?3;

-- name: events
-- Event batches after a group, in order; the upper bound is the next queue's.
SELECT place, time, body FROM events WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3;
