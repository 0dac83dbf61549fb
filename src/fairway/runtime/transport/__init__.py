"""Transports: frames between the process that hosts a queue and those that are attached to it."""
