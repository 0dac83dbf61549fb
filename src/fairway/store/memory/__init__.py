"""The store in memory: for tests, the simulator, and queues that need not outlive their process."""

from fairway.store.memory.shelf import Fault as Fault
from fairway.store.memory.shelf import Shelf as Shelf
from fairway.store.memory.store import MemoryStore as MemoryStore
