"""What producers, consumers and operators of a bucket queue do, by dice."""

from __future__ import annotations

from random import Random

import fairway
from tests.faults.bucket_calls import Calls


class Steps:
    """The steps of one thread, and the leases that it holds."""

    def __init__(self, dice: Random) -> None:
        self.dice, self.made = dice, 0
        self.held: list[fairway.BucketLease] = []  # that nobody ended yet

    def produce(self, calls: Calls, who: str) -> None:
        dice, bodies = self.dice, list[bytes]()
        for _ in range(dice.choice((1, 1, 2, 5, 30))):
            self.made += 1
            bodies.append(f"{who} {self.made} ".encode() * dice.choice((1, 1, 20, 200)))
        calls.put(bodies, dice.choice((0.0, 0.0, 0.0, 0.05)))

    def take(self, calls: Calls, wait_seconds: float = 0.0) -> None:
        self.held += calls.take(self.dice.choice((1, 5, 20)), wait_seconds)

    def settle(self, calls: Calls) -> None:
        """End some of what is held, in one way; also leases that ran out, or that the power loss before took."""
        dice = self.dice
        dice.shuffle(self.held)
        some = [self.held.pop() for _ in range(min(len(self.held), dice.choice((1, 1, 5, 20))))]
        if not some:
            return
        chance = dice.random()
        if chance < 0.1:
            renewed = calls.renew(some.pop())
            self.held += [renewed] if renewed is not None else []
        elif chance < 0.3:
            calls.settle("give_up", some[:3])
        elif chance < 0.5:
            calls.settle(dice.choice(("release", "fail")), some)
        else:
            calls.settle("complete", some)

    def operate(self, calls: Calls) -> None:
        """Look at the dead letters; some are purged, some become messages again."""
        letters = calls.dead()
        self.dice.shuffle(letters)
        some = letters[: self.dice.choice((1, 3, 60))]
        if some and self.dice.random() < 0.8:
            (calls.purge if self.dice.random() < 0.3 else calls.redrive)(some)
