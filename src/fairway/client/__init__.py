"""A queue behind a server: the ports that `Queue` and `AsyncQueue` stand on when they are opened with a URL."""
