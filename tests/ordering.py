"""The order in which the workers of a run take files: the longest first, and one at a time of those that are wide.

A wide file starts processes that fill both cores. Beside another wide one its time-outs are too short, and beside a
file that lives in one process it loses little. So one worker goes through the wide ones while the others do the rest.
Guards: a file stays whole on one worker; which worker runs it decides nothing but the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


class Order:
    """How long files take, by what was measured last, and which are wide."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.seconds: Mapping[str, float] = told.get("seconds", {})
        self.wide_areas = frozenset(told.get("wide_areas", ()))

    def wide(self, file: str) -> bool:
        return file.split("/")[1:2] != [] and file.split("/")[1] in self.wide_areas

    def sort(self, items: list[pytest.Item]) -> None:
        """Whole files, the longest first; those that nobody measured come last, as they were collected."""
        items.sort(key=lambda item: -self.seconds.get(file_of(item.nodeid), 0.0))


def file_of(test: str) -> str:
    return test.split("::", 1)[0]


class LongestFirst(LoadFileScheduling):
    """Files in the order of the collection, of which at most one worker has wide ones while there are others."""

    order = Order({})

    def _assign_work_unit(self, node: Any) -> None:
        others = (work for other, work in self.assigned_work.items() if other is not node)
        busy = any(
            self.order.wide(file) and not all(tests.values())
            for work in others
            for file, tests in work.items()
        )
        wanted = (file for file in self.workqueue if self.order.wide(file) is not busy)
        self.workqueue.move_to_end(next(wanted, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)


def scheduler(config: pytest.Config, log: Any, order: Order) -> LongestFirst:
    """For `--dist loadfile`."""
    config.option.loadscopereorder = False  # it would sort files by how many tests they have
    made = LongestFirst(config, log)
    made.order = order
    return made
