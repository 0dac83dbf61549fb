"""Removing: the objects of submissions that are over, where that was asked for.

Guards: other objects stay; what cannot be reached takes little of a sweep, and everything beside it comes to its turn.
"""

from __future__ import annotations

import re
import time
from typing import Final
from urllib.parse import urlsplit

from fairway.errors import FairwayError
from fairway.model.stored import Time
from fairway.model.submission import Described
from fairway.runtime import objects
from fairway.runtime.failing import Failing

FAILING_SECONDS: Final = (
    5.0  # of a sweep, for what fails below one root: a request that nobody answers takes minutes
)
_NAME: Final = re.compile(r"(\d+)(\.out\.[0-9a-f.]+)?")


class Removing:
    """Removes objects, submission by submission in the order in which they ended, sweep after sweep."""

    def __init__(self, failing: Failing) -> None:
        self._failing = failing
        self._reasons: dict[str, str] = {}  # why it failed first, by root
        self._resume: dict[str, Time] = {}  # below these roots this sweep begins where the last one stopped
        self.begin()

    def begin(self) -> None:
        """A sweep begins."""
        self._stopped: dict[str, Time] = {}
        self._spent: dict[str, float] = {}  # seconds on what failed
        self._worked: set[str] = set()

    def end(self) -> None:
        """A sweep is through."""
        for root in self._worked - self._spent.keys() - self._resume.keys():
            self._reasons.pop(root, None)
            self._failing.tell(f"remove objects from {root}", None)
        self._resume = self._stopped

    def remove(self, described: Described, ended: Time) -> bool:
        """Remove the objects of a submission; False if they cannot be reached, or it is not their turn."""
        for prefix, count in described.segments if described.delete_objects else ():
            root = "{0.scheme}://{0.netloc}".format(urlsplit(prefix))
            if not self._is_turn(root, ended):
                return False
            began = time.monotonic()
            try:
                remove_objects(prefix, count)
            except FairwayError as error:
                self._spent[root] = self._spent.get(root, 0.0) + time.monotonic() - began
                reason = self._reasons.setdefault(root, f"submission {ended[1]}: {error}")
                self._failing.tell(f"remove objects from {root}", reason)
                return False
            self._worked.add(root)
        return True

    def _is_turn(self, root: str, ended: Time) -> bool:
        if root in self._spent and self._spent[root] >= FAILING_SECONDS:
            self._stopped.setdefault(root, ended)
            return False
        return ended >= self._resume.get(root, ended)


def remove_objects(prefix: str, count: int) -> None:
    """Remove the payloads 0..count-1 under a prefix, and every result of theirs; other objects stay."""
    store = objects.ObstoreObjects()
    for names in objects.under(prefix):
        ours = [f"{prefix}/{name}" for name in names if (m := _NAME.fullmatch(name)) and int(m[1]) < count]
        store.remove(ours)
