"""The life cycle is the table: no submission and no chunk changes its state in any other way."""

from __future__ import annotations

from random import Random

import pytest

from fairway.engine.commands import Call, Redrive
from fairway.engine.lifecycle import CHUNK, SUBMISSION, submission_after
from fairway.engine.lookups import Lookups
from fairway.engine.run import Run
from fairway.engine.thaw import pages_into, thaw
from fairway.errors import FairwayError
from tests.engine.desk import Desk, chunks, some
from tests.engine.truth import chunk_states

EDGES = {(before, after) for (before, _), after in CHUNK.items()}
STATES = {*CHUNK.values()}


def runs_of(desk: Desk, ids: list[int]) -> list[Run]:
    """Runs, in memory or not."""
    runs = []
    for id in ids:
        run = desk.state.runs.get(id)
        if run is None:
            found = Lookups(0, whole=[id]).read(desk.store)
            run = thaw(found.runs[id], desk.state.seed)
            pages_into(run, found)
        runs.append(run)
    return runs


def states(desk: Desk, ids: list[int]) -> dict[tuple[int, int], str]:
    found = {
        (run.id, index): state for run in runs_of(desk, ids) for index, state in chunk_states(run).items()
    }
    return found | {(run.id, -1): run.state for run in runs_of(desk, ids)}


def way(before: str, after: str, edges: set[tuple[str, str]]) -> bool:
    """Whether one step of the table leads there, or two: what comes back may be handed out in the same call."""
    return (before, after) in edges or any((before, s) in edges and (s, after) in edges for s in STATES)


@pytest.mark.parametrize("seed", range(30))
def test_no_other_transition_exists(seed: int) -> None:
    dice = Random(seed)
    desk = Desk(audited=seed < 5)
    desk.configure(attempts_max=2)
    ids: list[int] = []
    held = []
    known = states(desk, ids)
    lives = {(before, after) for (before, _), after in SUBMISSION.items()}
    for _ in range(60):
        what = dice.choice(["submit", "reserve", "reserve", "complete", "fail", "release", "time", "cancel", "redrive",
                            "wait", "pause", "resume", "name", "restart"])  # fmt: skip
        leases = (
            some(held[0], *dice.sample(chunks(held[0]), dice.randint(1, len(chunks(held[0])))))
            if held
            else []
        )
        dice.shuffle(held)
        id = dice.choice(ids) if ids else 0
        try:
            if what == "submit":
                policy = dice.choice(["fail_fast", "dead_letter"])
                ids.append(
                    desk.submit(
                        dice.choice("ab"), dice.randint(0, 5), policy=policy, deadline=dice.choice([0, 0, 60])
                    )
                )
            elif (
                what == "reserve"
                and (reserved := desk.reserve(dice.randint(1, 5), dice.choice(["Fair", "Random"]), 20)).spans
            ) or (
                what == "name" and (reserved := desk.named("c", desk.join("c"), dice.randint(0, 2), 3)).spans
            ):
                held.append(reserved)
            elif what == "fail":
                desk.fail(leases, retry=dice.random() < 0.7, delay=dice.choice([-1, 0]))
            elif what in ("complete", "release"):
                getattr(desk, what)(leases)
            elif what in ("cancel", "redrive"):
                getattr(desk, what)(id)
            elif what in ("pause", "resume"):
                getattr(desk, what)(submission=id)
            elif what == "wait":
                desk.wait_for_work(30)
            elif what == "restart":
                desk.restart()
            elif what == "time":
                desk.now += dice.choice([1, 25])
                desk.engine.tick(desk.now)
                desk.settle()
        except FairwayError:
            pass
        now = states(desk, ids)
        for where, after in now.items():
            before = known.get(where, "")
            if where[1] < 0:
                assert before == after or (before, after) in lives, (what, before, after)
            else:
                assert before == after or way(before, after, EDGES), (what, where, before, after)
        known = now


def test_an_event_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError):
        submission_after("completed", "redrive")
    with pytest.raises(KeyError):
        submission_after("cancelled", "cancel")


def held_by_name(desk: Desk) -> int:
    x = desk.submit(n=1, attempts_max=1, policy="dead_letter")
    desk.named("c", desk.join("c"), 1)
    return x


# One scenario per event of CHUNK: it leads to the state before it, then comes the event.
SCENARIOS = {
    ("waiting", "reserve"): (lambda d: d.submit(), lambda d, x: d.reserve()),
    ("waiting", "complete with an expired receipt"): (
        lambda d: (d.submit(n=2), setattr(d, "held", d.reserve(lease=5)), d.pass_time(6))[0],
        lambda d, x: d.complete(d.held),
    ),
    ("waiting", "submission ends"): (lambda d: d.submit(), lambda d, x: d.cancel(x)),
    ("leased", "complete"): (
        lambda d: (d.submit(n=2), setattr(d, "held", d.reserve()))[0],
        lambda d, x: d.complete(d.held),
    ),
    ("leased", "release"): (
        lambda d: (d.submit(), setattr(d, "held", d.reserve()))[0],
        lambda d, x: d.release(d.held),
    ),
    ("leased", "fail, retry at once"): (
        lambda d: (d.submit(), setattr(d, "held", d.reserve()))[0],
        lambda d, x: d.fail(d.held, delay=0),
    ),
    ("leased", "fail, retry later"): (
        lambda d: (d.submit(), setattr(d, "held", d.reserve()))[0],
        lambda d, x: d.fail(d.held),
    ),
    ("leased", "fail, no attempt left"): (
        lambda d: (d.submit(attempts_max=1), setattr(d, "held", d.reserve()))[0],
        lambda d, x: d.fail(d.held),
    ),
    ("leased", "expire"): (lambda d: (d.submit(), d.reserve(lease=5))[0], lambda d, x: d.pass_time(6)),
    ("leased", "expire, no attempt left"): (
        lambda d: (d.submit(attempts_max=1), d.reserve(lease=5))[0],
        lambda d, x: d.pass_time(6),
    ),
    ("leased", "hand back by name, no attempt left"): (
        held_by_name,
        lambda d, x: d.named("c", d.join("c"), 1),
    ),
    ("leased", "submission ends"): (lambda d: (d.submit(), d.reserve())[0], lambda d, x: d.cancel(x)),
    ("backing off", "due"): (
        lambda d: (d.submit(), d.fail(d.reserve(), delay=5))[0],
        lambda d, x: d.pass_time(6),
    ),
    ("backing off", "submission ends"): (
        lambda d: (d.submit(), d.fail(d.reserve(), delay=5))[0],
        lambda d, x: d.cancel(x),
    ),
    ("dead", "redrive"): (
        lambda d: (d.submit(), d.fail(d.reserve(), retry=False))[0],
        lambda d, x: d.redrive(x),
    ),
    ("skipped", "redrive"): (
        lambda d: d.cancel(d.submit()).id,
        lambda d, x: d.redrive(x),
    ),
    ("skipped", "redrive, its lease still out"): (
        lambda d: (setattr(d, "x", d.submit()), d.reserve(), d.cancel(d.x).id)[2],
        lambda d, x: d.redrive(x),
    ),
}


def test_every_event_of_the_table_has_its_scenario() -> None:
    assert set(SCENARIOS) == {(before, event) for before, event in CHUNK if before}


@pytest.mark.parametrize(("before", "event"), SCENARIOS)
def test_the_table_says_what_follows(before: str, event: str) -> None:
    prepare, act = SCENARIOS[before, event]
    desk = Desk()
    x = prepare(desk)
    assert states(desk, [x])[x, 0] == before
    act(desk, x)
    assert states(desk, [x])[x, 0] == CHUNK[before, event]


def test_the_submission_table_says_what_follows() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    assert desk.show(x).state == SUBMISSION["", "submit"]
    desk.complete(desk.reserve())
    assert desk.show(x).state == SUBMISSION["active", "last chunk done"]
    assert desk.show(desk.submit(n=0)).state == SUBMISSION["", "submit of no chunks"]
    y = desk.submit(n=2, policy="dead_letter")
    desk.fail(desk.reserve(), retry=False)
    assert desk.redrive(y).state == SUBMISSION["active", "redrive"]
    desk.fail(desk.reserve(), retry=False)
    desk.complete(desk.reserve())
    assert desk.show(y).state == SUBMISSION["active", "last chunk done, some dead"]
    assert desk.redrive(y).state == SUBMISSION["failed", "redrive"]
    desk.cancel(y)
    assert desk.show(y).state == SUBMISSION["active", "cancel"]
    assert desk.redrive(y).state == SUBMISSION["cancelled", "redrive"]
    assert isinstance(desk.engine.lookups(Call(Redrive(x))), Lookups)
