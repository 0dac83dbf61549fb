"""The audit of a queue: what its event log proves, worked out by Spark SQL."""
