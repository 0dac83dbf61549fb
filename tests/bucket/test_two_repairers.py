"""Two repairers at once are harmless, however their steps fall, and while messages go on coming and going."""

from __future__ import annotations

from random import Random

from fairway.bucket import repairing, settling
from fairway.bucket import statements as s
from tests.bucket.directing import Play, Stage, ticket

SEEDS = 300


def stage_of(rounds: int) -> Stage:
    """Buckets with something for a repairer to do: done, delivered too often, half buried, waiting, and idle."""
    stage = Stage(attempts_max=1, bucket_rows=4, seal_seconds=0.0)
    for n in range(rounds):
        stage.put(b"done%d" % n, b"over%d" % n, b"dying%d" % n)
        leased = {one.row.body: one for one in stage.reserve()}
        stage.complete([leased[b"done%d" % n]])
        one = leased[b"dying%d" % n]
        doom = settling.fail(stage.generation, one.bucket, [ticket(one)], stage.config, "why", False, None)
        stage.play(doom).until(s.AddDead).die()
        stage.now += 60
    stage.put(b"waits")
    return stage


def repairer(stage: Stage) -> Play[object]:
    return stage.play(repairing.repair(repairing.Repairer("q", stage.generation)))


def judge(stage: Stage, rounds: int, accepted: set[bytes]) -> None:
    expected = [b"%s%d" % (what, n) for what in (b"dying", b"over") for n in range(rounds)]
    stage.repair(6)
    assert sorted(letter.body for letter in stage.dead()) == sorted(expected), "each of them once"
    assert stage.drain() == {b"waits", *accepted}, "nothing is lost, and nothing comes back"
    assert not stage.kept()


def test_two_repairers_are_harmless_wherever_the_second_begins() -> None:
    steps, play = 0, repairer(stage_of(1))
    while not play.over:
        play.step()
        steps += 1
    assert steps > 8
    for at in range(steps):
        stage = stage_of(1)
        first, second = repairer(stage), repairer(stage)
        for _ in range(at):
            first.step()
        second.finish()
        first.finish()
        judge(stage, 1, set())


def test_two_repairers_are_harmless_however_their_steps_fall() -> None:
    for seed in range(SEEDS):
        dice, stage = Random(seed), stage_of(2)
        plays, accepted = [repairer(stage), repairer(stage)], set[bytes]()
        for round in range(120):
            at = dice.randrange(2)
            if plays[at].over:
                plays[at] = repairer(stage)
            elif dice.random() < 0.05:
                stage.execute(plays[at].at)  # carried out, and its answer is lost
                plays[at].lose()
            else:
                plays[at].step()
            if dice.random() < 0.05:
                accepted.add(b"new%d" % round)
                stage.put(b"new%d" % round)
        for play in plays:
            play.finish()
        judge(stage, 2, accepted)
