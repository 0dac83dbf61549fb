"""The parts of bench/server.py: the server that is measured, a connection to it, and crowds that wait."""
