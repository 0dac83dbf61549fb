"""The simulator, the history checker and the conformance suite of bucket queues."""
