"""What a history lets one conclude: offers, deliveries, settlements and chunks, gathered once for all checks.

Guards: a fact is sure or it is marked as possible; a call without an answer is always only possible.

Reservations are ordered by their receipts (owner epoch, count), which rise in the order in which they were made, and
the owner's clock at a delivery is its deadline less the lease time: both hold whatever the caller's clock did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairway.limits import RESTORED_LEASE_SECONDS
from fairway.model.config import QueueConfig
from fairway.testing.deliveries import (
    ChunkId,
    Delivery,
    Hand,
    Receipt,
    age_of,
    by_answer,
    is_trimmed,
    name_of,
)
from fairway.testing.history import History, Note, Request, Try

SLACK_SECONDS = 0.001  # times are floats near 2e9: a microsecond is lost in every sum


class Offered(msgspec.Struct):
    """One offer of a submit: what was given, and the id it got (0: no answer)."""

    request: Request
    given: dict[str, Any]
    id: int = 0
    known: bool = False

    @property
    def tenant(self) -> str:
        return self.given.get("tenant", "")

    @property
    def mark(self) -> object:
        return self.given.get("metadata", {}).get("mark")


class Settling(msgspec.Struct):
    """One chunk of one complete, fail, renew or release; outcome "" when no answer was seen."""

    request: Request
    verb: str
    receipt: Receipt
    outcome: str
    place: int  # of this chunk in the call
    forged: bool = False


class Chunk(msgspec.Struct):
    """All that callers know of one chunk: hands in the order of receipts, settlings in the order of calls."""

    hands: list[Hand] = []
    settlings: list[Settling] = []

    def settled(self, receipt: Receipt, *verbs: str) -> Iterator[Settling]:
        for one in self.settlings:
            if one.receipt == receipt and one.verb in verbs:
                yield one


class View(msgspec.Struct):
    """A submission as some answer showed it."""

    request: Request
    shown: dict[str, Any]

    @property
    def ended(self) -> bool:
        return self.shown["state"] != "active"


class Facts:
    """Everything that the checks share."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.offers: list[Offered] = []
        self.by_id: dict[int, list[Offered]] = {}
        self.deliveries: list[Delivery] = []
        self.twice: list[tuple[Delivery, Request]] = []  # a receipt that two different requests got
        self.chunks: dict[ChunkId, Chunk] = {}
        self.views: dict[int, list[View]] = {}
        self.by_target: dict[str, dict[int, list[Request]]] = {"cancel": {}, "redrive": {}}
        self.losses: list[int] = []  # places where leases may have been forgotten: power loss, forget_leases
        self.starts: list[tuple[int, Note]] = []
        self._changes = [r for r in history.of("configure") if r.possible]
        self.tenants: dict[int, str] = {}  # of every submission that was shown, handed out or accepted
        self._gather_notes()
        self._gather_offers()
        self._gather_deliveries()
        self._gather_settlings()
        self._gather_views()

    # -- gathering

    def _gather_notes(self) -> None:
        for place, note in self.history.notes:
            if note.what == "start":
                self.starts.append((place, note))
            if note.what == "power_loss" or note.args.get("forget_leases"):
                self.losses.append(place)

    def _gather_offers(self) -> None:
        for request in self.history.of("submit"):
            if not request.possible:
                continue
            for n, given in enumerate(request.args["offers"]):
                offered = Offered(request, given)
                # A queue that is broken may answer with something else, which the checks of numbers tell.
                if request.answered and n < len(request.ok.get("ids", ())):
                    offered.id, offered.known = request.ok["ids"][n], request.ok["known"][n]
                    self.by_id.setdefault(offered.id, []).append(offered)
                self.offers.append(offered)
        for op, targets in self.by_target.items():
            for request in self.history.of(op):
                if request.possible:
                    targets.setdefault(request.args["sub"], []).append(request)

    def _gather_deliveries(self) -> None:
        by_receipt: dict[Receipt, list[Request]] = {}
        for request in self.history.of("reserve"):
            for receipt, told in by_answer(request).items():
                by_receipt.setdefault(receipt, []).append(told)
        for receipt, requests in sorted(by_receipt.items()):
            requests.sort(key=lambda r: (*age_of(r.ok["spans"]), r.end))
            delivery = self._delivery(receipt, requests[0])
            for other in requests[1:]:
                same_name = delivery.named and name_of(delivery.request) == name_of(other)
                delivery.again.append(other) if same_name else self.twice.append((delivery, other))
            self.deliveries.append(delivery)
            for chunk, attempt in delivery.picks():
                self.chunk(chunk).hands.append(Hand(delivery, attempt))

    def _delivery(self, receipt: Receipt, request: Request) -> Delivery:
        args, deadline = request.args, request.ok["deadline"]
        setting = "consumer_silent_seconds" if args.get("consumer") else "lease_seconds"
        given = 0 if args.get("consumer") else args.get("lease_seconds", 0)
        seconds = [given] if given else self.config(setting, request)
        # A repeated answer does not describe what has ended since.
        runs = {run["id"]: run for one in request.tries if one.answered for run in one.ok.get("runs", [])}
        self.tenants.update({id: run["tenant"] for id, run in runs.items()})
        low, high, begin = deadline - max(seconds), deadline - min(seconds), request.begin
        if args.get("consumer"):
            same = [
                r
                for r in self.history.of("reserve")
                if r.args.get("consumer") and name_of(r) == name_of(request)
            ]
            begin, first_t = min((r.begin, r.begin_t) for r in same)
            low = min(low, self.clock_low(begin, first_t))
        return Delivery(request, receipt, deadline, low, high, request.ok["spans"], runs, begin, [])

    def _gather_settlings(self) -> None:
        for request in self.history.of("complete", "fail", "renew", "release"):
            if not request.possible:
                continue
            outcomes = _unrolled(request.ok["outcomes"]) if request.answered else None
            forged = bool(request.args.get("forged"))
            place = 0
            for epoch, count, spans in request.args["parts"]:
                for submission, start, many in spans:
                    for index in range(start, start + many):
                        outcome = (
                            ""
                            if outcomes is None
                            else outcomes[place]
                            if place < len(outcomes)
                            else "missing"
                        )
                        settling = Settling(request, request.op, (epoch, count), outcome, place, forged)
                        self.chunk((submission, index)).settlings.append(settling)
                        place += 1

        for request in self.history.of("finish"):
            if request.possible:
                self._gather_batch(request)
        for request in self.history.of("trim"):
            if request.possible and request.args.get("complete"):
                for delivery in self.deliveries:
                    if is_trimmed(delivery, request):
                        self._may_complete(request, delivery, set())

    def _gather_batch(self, request: Request) -> None:
        """What a batch names; of the rest nobody says which chunks it is, so all that it was handed may be done."""
        place = 0
        named: set[tuple[Receipt, ChunkId]] = set()  # under another receipt it is not settled
        for verb, parts, told in (("complete", "parts", "outcomes"), ("fail", "failed", "failed")):
            outcomes = _unrolled(request.ok[told]) if request.answered else []
            for at, (receipt, id) in enumerate(_named_in(request.args[parts])):
                outcome = (outcomes[at] if at < len(outcomes) else "missing") if request.answered else ""
                self.chunk(id).settlings.append(Settling(request, verb, receipt, outcome, place))
                named.add((receipt, id))
                place += 1
        for delivery in self._may_be_of(request):
            self._may_complete(request, delivery, named)

    def _may_be_of(self, request: Request) -> Iterator[Delivery]:
        """The reservations that a batch may be about: of its epoch, if that is known, also by an answer nobody saw."""
        epoch, consumer, end = self.epoch_of(request), request.args["consumer"], request.end
        asked = {
            name_of(r)
            for r in self.history.of("reserve")
            if r.possible
            and r.args.get("consumer") == consumer
            and (not epoch or r.args["consumer_epoch"] == epoch)
            and (r.begin < end or not request.answered)
        }
        return (
            delivery for delivery in self.deliveries if delivery.named and name_of(delivery.request) in asked
        )

    def _may_complete(
        self, request: Request, delivery: Delivery, named: set[tuple[Receipt, ChunkId]]
    ) -> None:
        """A call completes what is left of a reservation, and does not say what that is."""
        for receipt, id in {(delivery.receipt, id) for id, _ in delivery.picks()} - named:
            # A place beyond all results: it has none.
            settling = Settling(request, "complete", receipt, "", len(named))
            self.chunk(id).settlings.append(settling)

    def _gather_views(self) -> None:
        for request in self.history.of("show", "wait", "cancel", "redrive", "list_active", "census"):
            if not request.answered:
                continue
            shown = request.ok["active"] if request.op == "census" else request.ok
            for one in shown if isinstance(shown, list) else [shown]:
                self.views.setdefault(one["id"], []).append(View(request, one))
                self.tenants[one["id"]] = one["tenant"]
        for id, offers in self.by_id.items():
            self.tenants[id] = offers[0].tenant

    # -- asking

    def epoch_of(self, request: Request) -> int:
        """The consumer's epoch that a request speaks for; 0 if nobody knows which epoch its run had."""
        if request.args.get("consumer_epoch"):
            return request.args["consumer_epoch"]
        run = request.args.get("run")
        return next((r.ok for r in self.history.of("join") if run and r.answered and r.args["run"] == run), 0)

    def handed_to(self, request: Request) -> Iterator[tuple[Delivery, list[Request]]]:
        """The named reservations that the epoch of a request was handed before its end, by which requests."""
        epoch, consumer = self.epoch_of(request), request.args["consumer"]
        end = request.end if request.answered else len(self.history.lines)
        for delivery in self.deliveries if epoch else ():
            asked = [
                one
                for one in (delivery.request, *delivery.again)
                if one.args.get("consumer") == consumer
                and one.args["consumer_epoch"] == epoch
                and one.begin < end
            ]
            if asked:
                yield delivery, asked

    @property
    def first_hidden(self) -> int:
        """From where on somebody may hold chunks of which nobody knows, or held them until the power was lost."""
        hidden = (
            r.begin
            for r in self.history.of("reserve")
            if r.hidden or (len(r.tries) > 1 and r.answered and self.forgotten(r.begin, r.end))
        )
        return min(hidden, default=len(self.history.lines))

    @property
    def ends_unnamed(self) -> bool:
        """Whether chunks may have been completed without being named by anybody."""
        trims = any(r.possible and r.args.get("complete") for r in self.history.of("trim"))
        return trims or any(r.possible for r in self.history.of("finish"))

    def chunk(self, id: ChunkId) -> Chunk:
        found = self.chunks.get(id)
        if found is None:
            found = self.chunks[id] = Chunk([], [])
        return found

    def config(self, name: str, request: Request) -> list[Any]:
        """Every value that a setting may have had while a request was under way."""
        end = request.end if request.answered else len(self.history.lines)
        sure = [r for r in self._changes if r.answered and name in r.args and r.end < request.begin]
        values = [
            r.args[name]
            for r in self._changes
            if name in r.args
            and r.begin < end
            and not any(r.answered and r.end < other.begin for other in sure)
        ]
        if not sure:
            first = self.history.header.config.get(name, getattr(QueueConfig(), name))
            values.append(first)
        return values

    def config_ever(self, name: str) -> list[Any]:
        """Every value that a setting may have had at any time."""
        first = self.history.header.config.get(name, getattr(QueueConfig(), name))
        return [first, *(r.args[name] for r in self._changes if name in r.args)]

    def redriven(self, submission: int, after: int, before: int) -> bool:
        """Whether a redrive may have taken effect between two places."""
        return any(
            r.begin < before and not (r.answered and r.end < after)
            for r in self.by_target["redrive"].get(submission, [])
        )

    def forgotten(self, after: int, before: int) -> bool:
        """Whether leases may have been forgotten between two places."""
        return any(after < place < before for place in self.losses)

    def seconds_at_most(self, first: Request, last: Try) -> float:
        """How much time may have passed on owners' clocks from a request until an answer."""
        return self.clock_high(last.end, last.end_t) - self.clock_low(first.begin, first.begin_t)

    def may_be_trimmed(self, delivery: Delivery, before: int) -> bool:
        """Whether a trim may have let go of a named reservation before a place."""
        trims = [r for r in self.history.of("trim") if r.possible and r.begin < before]
        return any(is_trimmed(delivery, trim) for trim in trims)

    def may_be_purged(self, submission: int, place: int, t: float) -> bool:
        """Whether the retention of a submission may be over at a place; nobody knows when an unaccepted one began."""
        kept = min(self.config_ever("retention_seconds"))
        accepted = [o.request for o in self.by_id.get(submission, []) if not o.known]
        first = min((self.clock_low(r.begin, r.begin_t) for r in accepted), default=0.0)
        return self.clock_high(place, t) - first >= kept

    def clock_low(self, place: int, t: float) -> float:
        """The owner's clock at a place is at least this."""
        started = [note for at, note in self.starts if at < place]
        return started[-1].args["clock"] + (t - started[-1].t) if started else t

    def clock_high(self, place: int, t: float) -> float:
        """The owner's clock at a place is at most this."""
        return max([note.args["clock"] + (t - note.t) for at, note in self.starts if at < place], default=t)

    def heard_at(self, request: Request) -> float:
        """When a request was carried out at the earliest, on the clock of whichever owner did it."""
        starts = [note.args["clock"] for at, note in self.starts if request.begin < at < request.end]
        return min([self.clock_low(request.begin, request.begin_t), *starts])

    def restarted(self, after: int, before: int) -> bool:
        return any(after < at < before for at, _ in self.starts)


def facts_of(history: History) -> Facts:
    """The facts of a history, gathered at the first call."""
    found = history.memo.get("facts")
    if found is None:
        found = history.memo["facts"] = Facts(history)
    return found


def over_at(facts: Facts, chunk: Chunk, hand: Hand, before: int) -> float | None:
    """When a lease that nobody answered was surely over, on the owner's clock; None if that cannot be told."""
    if hand.delivery.named or any(True for _ in chunk.settled(hand.receipt, "complete", "fail", "release")):
        return None
    until = hand.delivery.deadline
    for renewal in chunk.settled(hand.receipt, "renew"):
        if not renewal.outcome:
            return None
        if renewal.outcome == "renewed":
            until = max(until, renewal.request.ok["deadline"])
    # A start lets the leases that it finds live a little longer.
    started = [facts.clock_high(at + 1, note.t) for at, note in facts.starts if hand.begin < at < before]
    return max([until, *(clock + RESTORED_LEASE_SECONDS for clock in started)])


def _named_in(parts: list[Any]) -> Iterator[tuple[Receipt, ChunkId]]:
    for epoch, count, spans in parts:
        for submission, start, many in spans:
            yield from (((epoch, count), (submission, index)) for index in range(start, start + many))


def _unrolled(outcomes: list[list[Any]]) -> list[str]:
    return [outcome for outcome, many in outcomes for _ in range(many)]
