-- A bucket says in the index when the first of its messages can be due: until then nobody looks into it.
ALTER TABLE bucket_index ADD COLUMN due REAL NOT NULL DEFAULT 0;
-- Deletes that somebody left in the middle are found by whoever repairs any queue.
CREATE INDEX bucket_queues_deleting ON bucket_queues (state, name, generation) WHERE state = 'deleting';
