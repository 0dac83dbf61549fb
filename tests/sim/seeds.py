"""Many seeds, most of them short: what a history needs to go wrong mostly needs few steps, and many seeds."""

from __future__ import annotations

from fairway.testing.simulate import STEPS, Tally, simulate

SHORT = 40  # steps
LONG_EVERY = 10  # seeds


def check_seeds(seeds: range, tally: Tally) -> None:
    """Simulate each seed and fail with the story of the first that shows something wrong."""
    for seed in seeds:
        steps = STEPS if seed % LONG_EVERY == 0 else SHORT
        simulation = simulate(seed, steps)
        tally.add(simulation.outcome)
        history = simulation.recorder.history() if simulation.outcome.violations else None
        told = [
            violation.story(history) for violation in simulation.outcome.violations[:3] if history is not None
        ]
        replay = f"replay it with `fairway sim --start {seed} --seeds 1 --steps {steps}`"
        assert not told, f"seed {seed}: {replay}\n" + "\n".join(told)
