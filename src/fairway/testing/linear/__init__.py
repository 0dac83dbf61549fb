"""Linearisability: the answers to overlapping calls are those of some order in which they came one by one."""
