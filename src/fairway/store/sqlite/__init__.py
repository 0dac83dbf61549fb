"""The store in one SQLite file, for one machine."""

from fairway.store.sqlite.store import SqliteStore as SqliteStore
