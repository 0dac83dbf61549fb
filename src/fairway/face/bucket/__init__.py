"""The verbs of bucket queues, without I/O."""
