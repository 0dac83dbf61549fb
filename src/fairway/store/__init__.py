"""Stores: one small port, and its implementations."""
