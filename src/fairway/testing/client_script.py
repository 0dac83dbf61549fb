"""What a simulated caller asks for next: chosen by dice from what it knows.

Guards: a choice depends on the dice of its step and on what callers were told, on nothing else.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fairway.engine import commands as c
from fairway.model.page import payload_pages
from fairway.model.submission import Described, Offer
from fairway.testing.caller import Asked, Caller, Held, payload_of, results_of, texts
from fairway.testing.deliveries import ChunkId
from fairway.testing.profile import Profile
from fairway.testing.vocabulary import args_of

_MANY = 200  # chunks of a submission that is not a whale


class Script:
    """Makes requests for callers; knows the submissions that any of them was told of."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.known: list[int] = []  # accepted submissions
        self.broken: list[int] = []  # those that failed in part, or were cancelled
        self.marks = 0
        self.keys: set[tuple[str, str]] = set()  # that anybody gave
        self.whales = 0
        self.paused: set[tuple[str | None, int]] = set()  # what somebody may have paused
        self.consumers: list[str] = ["nightly", "weekly"]

    def next(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        """The caller's next request, or None if the dice fell on something it cannot ask."""
        if not caller.id:
            if caller.joining is None:
                caller.joining = caller.ask(c.Register())
                return caller.joining
            return None
        ops = self.profile.ops
        op = dice.choices(list(ops), list(ops.values()))[0]
        return getattr(self, f"_{op}")(caller, dice, now)

    # -- giving work

    def _submit(self, caller: Caller, dice: Random, now: float) -> Asked:
        many = dice.choice((1, 1, 1, 2, 4))
        return self._offers(caller, [self._offer(dice, now, message=False) for _ in range(many)])

    def _put(self, caller: Caller, dice: Random, now: float) -> Asked:
        many = dice.choice((1, 1, 2, 8))
        return self._offers(caller, [self._offer(dice, now, message=True) for _ in range(many)])

    def _offers(self, caller: Caller, offers: list[tuple[Offer, list[bytes] | None]]) -> Asked:
        command = c.Submit([offer for offer, _ in offers])
        args = args_of(command)
        for given, (_, payloads) in zip(args["offers"], offers, strict=True):
            if payloads is not None:
                given["payloads"] = texts(payloads)
        return caller.ask(command, args)

    def _offer(self, dice: Random, now: float, *, message: bool) -> tuple[Offer, list[bytes] | None]:
        self.marks += 1
        mark = self.marks
        profile = self.profile
        total = 1 if message else self._total(dice)
        inline = message or (total <= _MANY and dice.random() < 0.6)
        payloads = [payload_of(mark, i) for i in range(total)] if inline and total else None
        pages, starts = payload_pages(payloads) if payloads else ((), ())
        key = dice.choice(("k1", "k2", f"k{mark}")) if dice.random() < profile.keys else ""
        fingerprint = dice.choice((b"same", b"same", b"other")) if key else b""
        timed = profile.delays and dice.random() < 0.3
        size = {"size": dice.choice(("small", "large"))} if profile.sizes else {}
        described = Described(
            tenant=dice.choice(profile.tenants),
            total=total,
            metadata={"mark": mark, "mode": dice.choice(("preview", "full")), **size},
            info=f"info {mark}".encode() if dice.random() < 0.2 else b"",
            priority=dice.choice((0, 0, 1, -5)),
            policy=dice.choice(("dead_letter", "dead_letter", "fail_fast")),
            page_starts=starts,
            segments=() if payloads or not total else ((f"mem://{mark}", total),),
            not_before=now + dice.choice((-5.0, 3.0)) if timed and dice.random() < 0.3 else 0.0,
            attempts_max=dice.choice((0, 0, 0, 1, 2)),
            key=key,
            fingerprint=fingerprint,
        )
        if key:
            self.keys.add((described.tenant, key))
        offer = Offer(
            described,
            pages,
            weight=dice.choice((0, 0, 0, 1000, 2500, 500, 33_333)) if "set_weight" in profile.ops else 0,
            delay_seconds=dice.choice((0.0, 2.0, 40.0)) if timed else 0.0,
            deadline_seconds=dice.choice((0.0, 0.0, 15.0, 200.0)) if timed else 0.0,
        )
        return offer, payloads

    def _total(self, dice: Random) -> int:
        most = self.profile.chunks_max
        if most > _MANY and not self.whales:
            self.whales += 1  # one is enough to have several pages of what is done
            return most
        most = min(most, _MANY)
        return dice.choice((0, 1, 2, min(most, 5), dice.randint(1, most), 3))

    # -- taking work

    def _reserve(self, caller: Caller, dice: Random, now: float) -> Asked:
        hungry = self.profile.hungry
        return caller.ask(
            c.Reserve(
                max=dice.choice((20, 200) if hungry else (1, 1, 2, 5, 20, 200)),
                strategy=dice.choice(self.profile.strategies),
                lease_seconds=dice.choice((0.0, 0.0, 1.0, 10.0)) if self.profile.brief else 0.0,
                wait_seconds=self._patience(dice, (5.0, 20.0) if hungry else (0.0, 0.0, 0.0, 2.0, 20.0)),
            )
        )

    def _patience(self, dice: Random, seconds: tuple[float, ...]) -> float:
        return dice.choice(seconds) if self.profile.waits else 0.0

    def _named(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        if not caller.consumer or not caller.consumer_epoch or dice.random() < 0.1:
            caller.consumer = dice.choice(self.consumers)
            if "finish" in self.profile.ops:
                caller.run = f"run {caller.next_number} of {caller.name} {caller.id}"
            return caller.ask(c.Join(caller.consumer, caller.run))
        if dice.random() < 0.5:
            caller.seq += 1
        seq = max(0, caller.seq - dice.choice((0, 0, 0, 1)))
        wait = self._patience(dice, (0.0, 0.0, 5.0))
        many = dice.choice((1, 2, 5, 9))
        return caller.ask(
            c.Reserve(
                many, "", 0.0, wait, consumer=caller.consumer, consumer_epoch=caller.consumer_epoch, seq=seq
            )
        )

    def _trim(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        if not caller.consumer_epoch:
            return None
        seq = max(0, caller.seq - dice.choice((0, 1, 2)))
        return caller.ask(c.Trim(caller.consumer, caller.consumer_epoch, seq, complete=dice.random() < 0.4))

    def _finish(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        """Settle all that the consumer was handed: a part by name, and the rest."""
        if not caller.consumer or not (caller.consumer_epoch or caller.run):
            return None
        named = [held for held in caller.held if held.consumer == caller.consumer]
        completed: list[c.Complete] = []
        failed: list[c.Fail] = []
        if named and dice.random() < 0.6:
            held = named[0]
            chunks = held.chunks[: dice.randint(1, len(held.chunks))]
            results: list[bytes | None] = [*results_of(chunks, held.epoch, held.count)]
            completed.append(c.Complete([held.part(chunks)], results))
        if named and dice.random() < 0.4 and (len(named) > 1 or not completed):
            failed.append(c.Fail([named[-1].part(named[-1].chunks[-1:])], "no luck"))
        by_run = not caller.consumer_epoch or dice.random() < 0.4
        for held in named:
            caller.drop(held, [*held.chunks])
        return caller.ask(
            c.Finish(
                caller.consumer,
                consumer_epoch=0 if by_run else caller.consumer_epoch,
                run=caller.run if by_run else "",
                completed=completed,
                failed=failed,
                whole=dice.random() < 0.5,
            )
        )

    def _listings(self, caller: Caller, dice: Random, now: float) -> Asked:
        explain = c.Explain(dice.choice(self.profile.strategies))
        return caller.ask(dice.choice((c.ListDead(), c.Consumers(), c.ShowConfig(), explain)))

    # -- answering

    def _some(self, caller: Caller, dice: Random, several: int) -> list[tuple[Held, list[ChunkId]]]:
        """Some leases: of one reservation or of several, all of them or a part."""
        if not caller.held:
            return []
        chosen = dice.sample(caller.held, min(len(caller.held), dice.randint(1, several)))
        taken: list[tuple[Held, list[ChunkId]]] = []
        for held in chosen:
            many = len(held.chunks) if dice.random() < 0.6 else dice.randint(1, len(held.chunks))
            first = dice.randint(0, len(held.chunks) - many)
            taken.append((held, held.chunks[first : first + min(many, 3000)]))
        return taken

    def _complete(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        some = self._some(caller, dice, 3)
        if not some:
            return None
        parts = [held.part(chunks) for held, chunks in some]
        results: list[bytes | None] | None = None
        if dice.random() < 0.6:
            results = [one for held, chunks in some for one in results_of(chunks, held.epoch, held.count)]
            if dice.random() < 0.2:
                results[0] = None
        for held, chunks in some:
            caller.drop(held, chunks)
        return caller.ask(c.Complete(parts, results))

    def _fail(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        some = self._some(caller, dice, 2)
        if not some:
            return None
        for held, chunks in some:
            caller.drop(held, chunks)
        delay = dice.choice((-1.0, -1.0, 0.0, 0.5, 20.0))
        parts = [held.part(chunks) for held, chunks in some]
        return caller.ask(
            c.Fail(parts, f"bad luck {now:.0f}", retry=dice.random() < 0.8, delay_seconds=delay)
        )

    def _renew(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        some = self._some(caller, dice, 2)
        parts = [held.part(chunks) for held, chunks in some]
        return caller.ask(c.Renew(parts, dice.choice((0.0, 0.0, 1.0, 60.0)))) if some else None

    def _release(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        some = self._some(caller, dice, 2)
        for held, chunks in some:
            caller.drop(held, chunks)
        return caller.ask(c.Release([held.part(chunks) for held, chunks in some])) if some else None

    def _stale(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        """Use a receipt again that was used before, whatever became of it."""
        if not caller.old:
            return None
        held = dice.choice(caller.old)
        part = held.part(held.chunks[:50])
        verb = dice.choice((c.Complete, c.Complete, c.Fail, c.Renew, c.Release))
        return caller.ask(verb([part]))

    def _forge(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        if not caller.held:
            return None
        held = dice.choice(caller.held)
        verb = dice.choice((c.Complete, c.Fail, c.Renew, c.Release))
        command = verb([held.part(held.chunks[:5], held.seal ^ (1 << dice.randrange(63)))])
        return caller.ask(command, {**args_of(command), "forged": True})

    def _repeat(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        """Send a request again that was answered, whether or not that was acknowledged."""
        return dice.choice(caller.past) if caller.past else None

    # -- steering

    def _id(self, dice: Random) -> int:
        return dice.choice(self.known[-12:]) if self.known else 12345

    def _cancel(self, caller: Caller, dice: Random, now: float) -> Asked:
        return caller.ask(c.Cancel(self._id(dice)))

    def _redrive(self, caller: Caller, dice: Random, now: float) -> Asked:
        broken = self.broken and dice.random() < 0.8
        return caller.ask(c.Redrive(dice.choice(self.broken[-6:]) if broken else self._id(dice)))

    def _show(self, caller: Caller, dice: Random, now: float) -> Asked:
        return caller.ask(dice.choice((c.Show(self._id(dice)), c.ListActive())))

    def _wait(self, caller: Caller, dice: Random, now: float) -> Asked:
        return caller.ask(c.Wait(self._id(dice), self._patience(dice, (0.0, 1.0, 30.0))))

    def _pause(self, caller: Caller, dice: Random, now: float) -> Asked:
        tenant, submission = dice.choice(
            ((None, 0), (dice.choice(self.profile.tenants), 0), (None, self._id(dice)))
        )
        self.paused.add((tenant, submission))
        return caller.ask(c.Pause(True, tenant, submission))

    def _resume(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        if not self.paused:
            return None
        tenant, submission = dice.choice(sorted(self.paused, key=str))
        return caller.ask(c.Pause(False, tenant, submission))

    def _set_weight(self, caller: Caller, dice: Random, now: float) -> Asked:
        weight = dice.choice((1000, 1000, 2000, 500, 10, 100_000, 33_333))
        return caller.ask(c.SetWeight(dice.choice(self.profile.tenants), weight))

    def _configure(self, caller: Caller, dice: Random, now: float) -> Asked:
        changes: tuple[dict[str, Any], ...] = (
            {"lease_seconds": dice.choice((1.0, 20.0))},
            {"attempts_max": dice.choice((2, 4))},
            {"strategy": dice.choice(("Fair", "OldestFirst"))},
            {"retry_delay_seconds": 0.5},
        )
        return caller.ask(c.Configure(dice.choice(changes)))

    def _goodbye(self, caller: Caller, dice: Random, now: float) -> Asked | None:
        return None if caller.open else caller.ask(c.Goodbye())
