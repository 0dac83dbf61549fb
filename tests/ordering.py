"""The order in which the workers of a run take files: the longest first, and of a wide area one file at a time.

A file of a wide area starts processes that fill both cores, and waits for them half of the time. Two of one area at a
time are too many for their time-outs. So one worker goes through such an area while the others do the rest.
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

    def wide_area(self, file: str) -> str | None:
        """The wide area that a file belongs to."""
        area = file.split("/")[1:2]
        return area[0] if area and area[0] in self.wide_areas else None

    def sort(self, items: list[pytest.Item]) -> None:
        """Whole files, the longest first; those that nobody measured come last, as they were collected."""
        items.sort(key=lambda item: -self.seconds.get(file_of(item.nodeid), 0.0))


def file_of(test: str) -> str:
    return test.split("::", 1)[0]


class LongestFirst(LoadFileScheduling):
    """Files in the order of the collection. Who is in a wide area stays there, and nobody joins it."""

    order = Order({})

    def _reschedule(self, node: Any) -> None:
        if self.workqueue and not self._free(node) and not node.shutting_down:
            node.shutdown()  # after what it has; all that is left is of areas that others are in
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        free = self._free(node) or list(self.workqueue)
        own = [file for file in free if self.order.wide_area(file) == self._area_of(node)]
        wide = [file for file in free if self.order.wide_area(file)]
        wanted = (own if self._area_of(node) else []) or wide or free
        self.workqueue.move_to_end(wanted[0], last=False)
        super()._assign_work_unit(node)

    def _free(self, node: Any) -> list[str]:
        """The files of no area that another worker is in, and stays in."""
        others = [other for other in self.assigned_work if other is not node and not other.shutting_down]
        taken = {self._area_of(other) for other in others} - {None}
        return [file for file in self.workqueue if self.order.wide_area(file) not in taken]

    def _area_of(self, node: Any) -> str | None:
        """The wide area that a worker is in: that of its last file, until all of it is done."""
        files = [file for file, tests in self.assigned_work.get(node, {}).items() if not all(tests.values())]
        return self.order.wide_area(files[-1]) if files else None


def scheduler(config: pytest.Config, log: Any, order: Order) -> LongestFirst:
    """For `--dist loadfile`."""
    config.option.loadscopereorder = False  # it would sort files by how many tests they have
    made = LongestFirst(config, log)
    made.order = order
    return made
