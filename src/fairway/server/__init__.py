"""The server: REST over HTTP, in one process or in several around one engine."""
