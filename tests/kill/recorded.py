"""A queue whose calls are written to a history file, each before it is made and after it was answered.

Guards: a line is one write to a file opened for appending, and no call begins before its line is written. So whatever
instant a process is killed at, a call that may have had an effect has a begin, and an end means that its caller saw it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairway
from fairway.model.lease import Lease, Ticket
from fairway.runtime.clock import wall_offset
from fairway.testing.history import Begin, End, Line, Note, line_bytes, text_of
from fairway.testing.vocabulary import reply_of, run_of, submission_of

Given = dict[str, Any]


class Recorded:
    """The verbs of a worker and a producer, recorded. Threads may share it."""

    def __init__(self, q: fairway.Queue, lines: Lines, life: int) -> None:
        self.q = q
        self.lines = lines
        self.life = life

    # -- producers

    def submit(self, who: str, verb: str, offers: list[Given], client: int, number: int) -> list[int]:
        """Submit under keys, for the first time, or again under the same number because nobody knows."""
        args = {"verb": verb, "offers": offers}
        ok = self.lines.call(who, "submit", args, lambda: _submitted(self.q, verb, offers), client, number)
        return ok["ids"]

    def submit_known(self, who: str, verb: str, offers: list[Given]) -> None:
        """Submit what was accepted before: its keys must name the same submissions."""

        def again() -> dict[str, Any]:
            return {**_submitted(self.q, verb, offers), "known": [True] * len(offers)}

        self.lines.call(who, "submit", {"verb": verb, "offers": offers}, again)

    def show(self, who: str, id: int) -> None:
        self.lines.call(who, "show", {"sub": id}, lambda: submission_of(self.q.submission(id)))

    # -- consumers

    def reserve(self, who: str, max: int, lease_seconds: float, wait_seconds: float) -> list[Lease]:
        found: list[Lease] = []

        def reserve() -> dict[str, Any]:
            found.extend(self.q.reserve(max, lease_seconds=lease_seconds, wait_seconds=wait_seconds))
            return _reserved(found)

        args = {"max": max, "lease_seconds": lease_seconds, "wait_seconds": wait_seconds}
        self.lines.call(who, "reserve", args, reserve)
        return found

    def complete(self, who: str, receipts: list[Ticket], results: list[bytes]) -> list[str]:
        args = {"parts": _parts(receipts), "results": [text_of(result) for result in results]}
        texts = [receipt.text() for receipt in receipts]
        return self._settle(who, "complete", args, lambda: self.q.complete(texts, results=results))

    def fail(self, who: str, receipts: list[Ticket], retry: bool, delay_seconds: float) -> list[str]:
        args = {"parts": _parts(receipts), "error": who, "retry": retry, "delay_seconds": delay_seconds}
        texts = [receipt.text() for receipt in receipts]
        return self._settle(
            who, "fail", args, lambda: self.q.fail(texts, who, retry=retry, delay_seconds=delay_seconds)
        )

    def release(self, who: str, receipts: list[Ticket]) -> list[str]:
        texts = [receipt.text() for receipt in receipts]
        return self._settle(who, "release", {"parts": _parts(receipts)}, lambda: self.q.release(texts))

    def renew(self, who: str, lease: Lease, seconds: float) -> bool:
        """Renew one lease; of several the queue would not say what became of those that it leaves out."""
        outcomes: list[str] = []

        def renew() -> dict[str, Any]:
            try:
                renewed = self.q.renew(lease, seconds)
            except (fairway.LeaseLost, fairway.AlreadyEnded) as error:
                outcomes.append("lost" if isinstance(error, fairway.LeaseLost) else "ended")
                return {"outcomes": [[outcomes[0], 1]], "deadline": 0.0}
            outcomes.append("renewed")
            return {"outcomes": [["renewed", 1]], "deadline": renewed.deadline}

        self.lines.call(who, "renew", {"parts": _parts([ticket_of(lease)]), "seconds": seconds}, renew)
        return outcomes == ["renewed"]

    def _settle(self, who: str, op: str, args: dict[str, Any], settle: Callable[[], list[str]]) -> list[str]:
        def settled() -> dict[str, Any]:
            return {"outcomes": [[outcome, 1] for outcome in settle()], "deadline": 0.0}

        return [outcome for outcome, _ in self.lines.call(who, op, args, settled)["outcomes"]]

    # -- the truth at the end

    def results(self, who: str, id: int) -> None:
        def read() -> list[list[Any]]:
            return [[result.index, text_of(result.data)] for result in self.q.results(id)]

        self.lines.call(who, "results", {"sub": id}, read)

    def census(self, who: str) -> None:
        """Counts and active submissions; nobody else may use the queue meanwhile."""

        def read() -> dict[str, Any]:
            active = [submission_of(one) for one in self.q.submissions(state="active")]
            return {
                "stats": reply_of(self.q.stats()),
                "active": active,
                "tenants": [reply_of(one) for one in self.q.tenants()],
            }

        self.lines.call(who, "census", {}, read)


class Lines:
    """The history file of one process; `offset` makes one clock of the monotonic clocks of all of them."""

    def __init__(self, path: Path, offset: float, first_call: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._offset = offset
        self._lock = threading.Lock()  # lines stand in the order of their times
        self._calls = first_call

    def call(
        self, who: str, op: str, args: dict[str, Any], do: Callable[[], Any], client: int = 0, number: int = 0
    ) -> Any:
        """Make a call between its two lines; an error of the queue is written down and raised."""
        with self._lock:
            call = self._calls = self._calls + 1
            self._write(Begin(self._now(), call, who, op, args, client, number))
        try:
            ok = do()
        except fairway.FairwayError as error:
            with self._lock:
                self._write(End(self._now(), call, None, error.code))
            raise
        with self._lock:
            self._write(End(self._now(), call, ok))
        return ok

    def note(self, what: str, **args: Any) -> None:
        with self._lock:
            self._write(Note(self._now(), what, args))

    def started(self, **args: Any) -> None:
        """An owner starts, now, by the wall clock."""
        with self._lock:
            now = self._now()
            self._write(Note(now, "start", {"clock": now - self._offset + wall_offset(), **args}))

    def write(self, line: Line) -> None:
        with self._lock:
            self._write(line)

    def now(self) -> float:
        """The time, as the history counts it."""
        return self._now()

    def _now(self) -> float:
        return self._offset + time.monotonic()

    def _write(self, line: Line) -> None:
        body = line_bytes(line)
        assert os.write(self._file, body) == len(body)

    def close(self) -> None:
        os.close(self._file)


def ticket_of(lease: Lease) -> Ticket:
    return Ticket(lease.submission, lease.index, lease.epoch, lease.count, lease.seal)


def _parts(receipts: list[Ticket]) -> list[Any]:
    return [[one.epoch, one.count, [[one.submission, one.index, 1]]] for one in receipts]


def _submitted(q: fairway.Queue, verb: str, offers: list[Given]) -> dict[str, Any]:
    words = [
        {name: value for name, value in one.items() if name not in ("total", "payloads")} for one in offers
    ]
    payloads = [[text.encode("latin-1") for text in one["payloads"]] for one in offers]
    if verb == "submit":
        ids = [q.submit(payloads[0], **words[0]).id]
    elif verb == "put":
        ids = [q.put(payloads[0][0], **words[0]).id]
    else:
        messages = [{"payload": data[0], **word} for data, word in zip(payloads, words, strict=True)]
        ids = [one.id for one in q.put_many(messages)]
    return {"ids": ids, "known": [False] * len(ids)}


def _reserved(leases: list[Lease]) -> dict[str, Any]:
    if not leases:
        return {"epoch": 0, "count": 0, "deadline": 0.0, "spans": []}
    first = leases[0]
    assert len({(one.epoch, one.count, one.seal, one.deadline) for one in leases}) == 1, "one reservation"
    return {
        "epoch": first.epoch,
        "count": first.count,
        "seal": first.seal,
        "deadline": first.deadline,
        "spans": [[one.submission, one.index, 1, one.attempt] for one in leases],
        "runs": [
            run_of(id, described) for id, described in {o.submission: o.described for o in leases}.items()
        ],
        "payloads": [[one.submission, one.index, text_of(one.payload)] for one in leases],
    }
