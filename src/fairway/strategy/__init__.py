"""Strategies: how a consumer chooses among submissions."""
