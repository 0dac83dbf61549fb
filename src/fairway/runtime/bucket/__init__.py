"""Bucket queues in this process: clocks, threads, and the storage they stand on."""
