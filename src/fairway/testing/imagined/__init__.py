"""An imagined Cassandra cluster, on which the shipped store runs in the simulator: no Java, no clock, one thread."""
