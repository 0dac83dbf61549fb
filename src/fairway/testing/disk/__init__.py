"""Disks for tests: they lose power, fail on request and flip bits."""
