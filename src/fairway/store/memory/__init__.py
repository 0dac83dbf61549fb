"""The store in memory: for tests, the simulator, and queues that need not outlive their process."""

from fairway.store.memory.shelf import Fault, Shelf
from fairway.store.memory.store import MemoryStore

__all__ = ["Fault", "MemoryStore", "Shelf"]
