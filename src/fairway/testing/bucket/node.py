"""A simulated node: what one process knows of a bucket queue, and loses when it dies."""

from __future__ import annotations

from fairway.bucket.repairing import Repairer
from fairway.bucket.rows import QueueRow
from fairway.bucket.taking import Reader
from fairway.bucket.writing import Slot, Writer


class Node:
    """One process with a clock of its own."""

    def __init__(self, name: str, skew: float) -> None:
        self.name, self.skew = name, skew
        self.alive = True
        self.writers: dict[bytes, Writer] = {}
        self.slots: dict[bytes, list[Slot]] = {}
        self.busy: set[int] = set()
        self.readers: dict[bytes, Reader] = {}
        self.repairers: dict[bytes, Repairer] = {}
        self.uid = b""  # the last one given

    def writer(self, name: str, queue: QueueRow) -> Writer:
        if queue.generation not in self.writers:
            self.writers[queue.generation] = Writer(name, queue, self.name)
        return self.writers[queue.generation]

    def free_slot(self, writer: Writer) -> Slot | None:
        """A slot that no put of this node uses; one put at a time fills a bucket."""
        slots = self.slots.setdefault(writer.generation, [])
        while len(slots) < writer.config.open_buckets:
            slots.append(Slot())
        return next((slot for slot in slots if id(slot) not in self.busy), None)

    def reader(self, name: str, queue: QueueRow) -> Reader:
        if queue.generation not in self.readers:
            self.readers[queue.generation] = Reader(name, queue, self.name)
        return self.readers[queue.generation]

    def repairer(self, name: str, generation: bytes) -> Repairer:
        if generation not in self.repairers:
            self.repairers[generation] = Repairer(name, generation)
        return self.repairers[generation]
