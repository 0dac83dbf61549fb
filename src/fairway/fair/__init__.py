"""Fairness: exact turns by weight, levels in the store, and the ack level."""
