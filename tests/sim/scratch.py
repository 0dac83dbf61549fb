"""Planted bugs looked for from scratch: each in the seeds from 0 on, until one shows it."""

from __future__ import annotations

from typing import Any

from fairway.testing.planted import search
from fairway.testing.planted.planting import Bugs
from fairway.testing.shrink import Simulate
from fairway.testing.simulate import STEPS, Simulation


class Scratch:
    """A search for some bugs: what it took, and what it did not find."""

    def __init__(self, bugs: Bugs, run: Simulate, seeds_max: int) -> None:
        self.calls = self.faults = 0
        self.seeds: dict[str, int] = {}  # by bug, the first that shows it
        self._run = run
        for bug in bugs:
            found = search(bug, range(seeds_max), bugs=bugs, run=self._counted)
            if found is not None:
                self.seeds[bug] = found.seed
                print(f"| {bug} | {found.seed:,} | {', '.join(found.checks)} |", flush=True)
        self.hidden = [bug for bug in bugs if bug not in self.seeds]

    def _counted(self, seed: int, steps: int) -> Simulation:
        simulation = self._run(seed, steps)
        self.calls += simulation.outcome.calls
        self.faults += sum(simulation.outcome.faults.values())
        return simulation

    def figures(self) -> dict[str, Any]:
        """What its row says."""
        latest = max(self.seeds, key=self.seeds.__getitem__, default="")
        found = f"{len(self.seeds)} of {len(self.seeds) + len(self.hidden)} bugs were found"
        return {
            "operations": self.calls,
            "faults": self.faults,
            "lost": len(self.hidden),
            "simulated": True,
            "seed": f"0 to {self.seeds.get(latest, 0):,}, x {STEPS} steps",
            "note": f"{found}, the last of them, {latest!r}, with seed {self.seeds[latest]:,}"
            if latest
            else found,
        }
