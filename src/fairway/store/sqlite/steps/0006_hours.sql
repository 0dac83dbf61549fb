-- A bucket says in the index when the first of its messages can be due: until then nobody looks into it.
ALTER TABLE bucket_index ADD COLUMN due REAL NOT NULL DEFAULT 0;
