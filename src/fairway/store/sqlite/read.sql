-- name: last_number
-- The number of the last stored group.
SELECT number FROM queues WHERE queue = ?1;

-- name: active
-- The active runs in level order, without their pages.
SELECT r.id, r.pass, r.tenant, r.body
FROM levels l CROSS JOIN runs r ON r.id = l.id
WHERE l.queue = ?1 ORDER BY l.pass, l.id;

-- name: objects
-- All small objects of a kind: integer keys first, then texts.
SELECT key, part, body FROM objects WHERE queue = ?1 AND kind = ?2 ORDER BY key, part;

-- name: object
-- One small object.
SELECT body FROM objects WHERE queue = ?1 AND kind = ?2 AND key = ?3 AND part = ?4;

-- name: journal
-- The journal of a queue in order; places below and at the bounds are other queues'.
SELECT place, body FROM journal WHERE place >= ?1 AND place < ?2 ORDER BY place;

-- name: run
-- One run, active or ended.
SELECT r.id, r.pass, r.tenant, r.body, e.state, e.body
FROM runs r LEFT JOIN ends e ON e.queue = ?1 AND e.id = r.id
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
-- Runs that ended before a time, oldest first.
SELECT id FROM ends WHERE queue = ?1 AND at < ?2 ORDER BY at, id LIMIT ?3;

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
