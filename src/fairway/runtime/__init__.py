"""The only place with clocks and threads: the engine's host, group commit, sweeping, embedded queues."""
