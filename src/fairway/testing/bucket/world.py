"""The simulated world of bucket queues: one storage, nodes with clocks of their own, one statement per step.

Guards: one seed, one history. A statement of unknown outcome was dropped, or carried out in time, or comes late, also
after the read that looked for it; a node is held up or dies between any two steps.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator
from random import Random
from typing import Any

from fairway.bucket import statements as s
from fairway.bucket.statements import APPLIED, UNKNOWN
from fairway.store.memory.buckets import MemoryBuckets
from fairway.testing.bucket.node import Node
from fairway.testing.bucket.profile import BucketProfile
from fairway.testing.history import Header, Recorder

QUEUE = "sim"
BEGIN = 1_800_000_000.0
TIMEOUT_SECONDS = 2.0
Activity = Generator[s.Step, Any, None]


class Watched(MemoryBuckets):
    """A storage that tells the history which takes and completions it carried out."""

    def __init__(self, note: Callable[..., None]) -> None:
        super().__init__()
        self.note = note

    def execute(self, statement: s.Statement) -> Any:
        found = super().execute(statement)
        if found is APPLIED:
            if isinstance(statement, s.Take):
                uids = [row.uid.hex() for row in statement.rows]
                self.note("took", uids=uids, nonce=f"{statement.nonce:x}", until=statement.lease)
            elif isinstance(statement, s.Finish | s.Doom):
                what = "finished" if isinstance(statement, s.Finish) else "doomed"
                self.note(what, uids=[row.uid.hex() for row in statement.rows])
        return found


class World:
    """Everything that happens in one simulation."""

    def __init__(self, profile: BucketProfile) -> None:
        self.profile = profile
        self.now = BEGIN
        self.faulty = True
        origin = {"kind": "bucket", "seed": profile.seed, "flavour": profile.flavour}
        config: dict[str, Any] = {"attempts_max": profile.config.attempts_max, "skew": profile.skew_seconds}
        self.recorder = Recorder(Header(queue=QUEUE, config=config, drained=True, origin=origin))
        self.storage: MemoryBuckets = Watched(self._note)
        self.faults: Counter[str] = Counter()
        self.calls = 0
        self.nodes: dict[str, Node] = {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._seq = 0
        self.incarnations = 0

    def _note(self, what: str, **args: object) -> None:
        self.recorder.note(self.now, what, **args)

    # -- nodes
    def node(self, place: str) -> Node:
        """The node that stands in a place; a dead one is replaced."""
        found = self.nodes.get(place)
        if found is None or not found.alive:
            self.incarnations += 1
            dice = Random(f"{self.profile.seed} {place} {self.incarnations}")
            skew = dice.uniform(-self.profile.skew_seconds, self.profile.skew_seconds)
            found = self.nodes[place] = Node(f"{place}.{self.incarnations}", skew)
        return found

    # -- time
    def at(self, delay: float, action: Callable[[], None]) -> None:
        self._seq += 1
        heapq.heappush(self._heap, (self.now + delay, self._seq, action))

    def run(self, until: float) -> None:
        """Everything that is to happen up to a time."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = max(self.now, until)

    # -- activities
    def start(self, node: Node, activity: Activity, dice: Random) -> None:
        """Let a node do something; it stops where its node dies."""
        self.calls += 1
        self._go_on(node, activity, dice, None)

    def _go_on(self, node: Node, activity: Activity, dice: Random, value: Any) -> None:
        while True:
            if not node.alive:
                activity.close()
                return
            if self.faulty and dice.random() < self.profile.kill:
                self.faults["kill"] += 1
                self.recorder.note(self.now, "kill", node=node.name)
                node.alive = False
                continue
            try:
                step = activity.send(value)
            except StopIteration:
                return
            if isinstance(step, s.Fresh):
                value = s.Moment(self.now + node.skew, dice.getrandbits(128))
                continue
            if isinstance(step, s.Statement):
                return self._execute(node, activity, dice, step)
            return self.at(step.seconds, lambda: self._go_on(node, activity, dice, None))

    def _execute(self, node: Node, activity: Activity, dice: Random, statement: s.Statement) -> None:
        profile, latency = self.profile, dice.uniform(0.001, 0.03)
        if self.faulty and dice.random() < profile.pause:
            self.faults["pause"] += 1
            latency += dice.uniform(0, profile.pause_seconds)
        chance = dice.random()
        rate = profile.rate if isinstance(statement, s.Write) else profile.rate / 2
        if self.faulty and chance < rate:
            self._lose(statement, chance / rate, latency, dice)
            timeout = latency + TIMEOUT_SECONDS
            return self.at(timeout, lambda: self._go_on(node, activity, dice, UNKNOWN))

        def carry_out() -> None:
            found = self.storage.execute(statement)
            self.at(dice.uniform(0.001, 0.02), lambda: self._go_on(node, activity, dice, found))

        self.at(latency, carry_out)

    def _lose(self, statement: s.Statement, chance: float, latency: float, dice: Random) -> None:
        """The answer never comes; what becomes of a write is another matter."""
        if isinstance(statement, s.Read):
            self.faults["lost_read"] += 1
        elif chance < 0.4:
            self.faults["late"] += 1
            self.at(latency + dice.uniform(0, self.profile.late_seconds), self._later(statement))
        elif chance < 0.8:
            self.faults["lost_reply"] += 1
            self.at(latency, self._later(statement))
        else:
            self.faults["dropped"] += 1

    def _later(self, statement: s.Statement) -> Callable[[], None]:
        return lambda: self.storage.execute(statement)
