"""Histories told by hand: a few words for each call, so that a test reads like what happened."""

from __future__ import annotations

from typing import Any

from fairway.testing.history import Header, History, Recorder

BEGIN = 1_000_000.0


class Story:
    """A history in the making; `go` is a call with its answer, `ask` one without."""

    def __init__(self, *, drained: bool = False, **config: Any) -> None:
        self.recorder = Recorder(Header(config=config, drained=drained))
        self.t = BEGIN
        self.offers: dict[int, dict[str, Any]] = {}

    def go(
        self,
        op: str,
        ok: Any = None,
        *,
        error: str = "",
        who: str = "ann",
        number: int = 0,
        received: int = 0,
        **args: Any,
    ) -> Any:
        """A call that is answered at once."""
        self.answer(self.ask(op, who=who, number=number, received=received, **args), ok, error=error)
        return ok

    def ask(self, op: str, *, who: str = "ann", number: int = 0, received: int = 0, **args: Any) -> int:
        """A call whose answer nobody has seen yet."""
        return self.recorder.begin(self.t, who, op, args, 7 if number else 0, number, received)

    def answer(self, call: int, ok: Any = None, *, error: str = "") -> None:
        self.recorder.end(self.t, call, ok, error)

    def note(self, what: str, **args: Any) -> None:
        self.recorder.note(self.t, what, **args)

    def wait(self, seconds: float) -> None:
        self.t += seconds

    def submit(self, id: int, total: int = 1, *, known: bool = False, number: int = 0, **given: Any) -> None:
        """One submission is accepted."""
        offer = {"tenant": given.pop("tenant", ""), "total": total, "policy": "dead_letter", **given}
        self.offers.setdefault(id, offer)
        self.go("submit", {"ids": [id], "known": [known]}, number=number, offers=[offer])

    def reserve(
        self,
        count: int,
        *spans: tuple[int, int, int, int],
        seconds: float = 60.0,
        many: int = 100,
        epoch: int = 1,
        payloads: Any = None,
        number: int = 0,
        run: dict[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Spans are handed out; the owner's clock is the story's."""
        ids = sorted({span[0] for span in spans})
        ok = {
            "epoch": epoch,
            "count": count,
            "deadline": self.t + seconds,
            "spans": [list(span) for span in spans],
            "runs": [self._run(id, run or {}) for id in ids],
        }
        if payloads is not None:
            ok["payloads"] = payloads
        return self.go("reserve", ok, number=number, max=many, lease_seconds=seconds, **more)

    def _run(self, id: int, run: dict[str, Any]) -> dict[str, Any]:
        offer = self.offers.get(id, {"tenant": "", "total": 1})
        times = {"created": BEGIN, "not_before": 0.0, "deadline": 0.0, "attempts_max": 0}
        return {"id": id, "tenant": offer["tenant"], "total": offer["total"], **times, **run}

    def settle(
        self, verb: str, count: int, *spans: tuple[int, int, int], outcome: str, epoch: int = 1, **args: Any
    ) -> None:
        """complete, fail, renew or release with one outcome for all."""
        chunks = sum(span[2] for span in spans)
        deadline = self.t + args.get("seconds", 0.0) if verb == "renew" else 0.0
        self.go(
            verb,
            {"outcomes": [[outcome, chunks]], "deadline": deadline},
            parts=[[epoch, count, spans]],
            **args,
        )

    def show(self, id: int, **shown: Any) -> None:
        self.go("show", submission(id, **shown), sub=id)

    def history(self) -> History:
        return self.recorder.history()


def submission(id: int, **shown: Any) -> dict[str, Any]:
    """A submission as it is shown."""
    return {
        "id": id,
        "state": "active",
        "tenant": "",
        "total": 1,
        "done": 0,
        "failed": 0,
        "leased": 0,
        "life": 1,
        **shown,
    }


def census(active: list[dict[str, Any]], tenants: list[dict[str, Any]], **stats: int) -> dict[str, Any]:
    """The answer to a census; counts that are not given are 0."""
    counts = ("submissions_active", "chunks_waiting", "chunks_leased", "chunks_done", "chunks_dead")
    return {"stats": {**dict.fromkeys(counts, 0), **stats}, "active": active, "tenants": tenants}
