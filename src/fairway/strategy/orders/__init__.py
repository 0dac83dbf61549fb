"""The orders in which runs are picked, one live index each."""
