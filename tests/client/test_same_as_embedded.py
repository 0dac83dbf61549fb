"""The embedded queue's own tests, on a queue that another process hosts and on one behind a server."""

from __future__ import annotations

import inspect

from tests.runtime import test_queue

# This one knows the name of its queue; here every test has a queue of its own on a shared server.
_ELSEWHERE = {"test_stats_and_explain"}

SHARED = {
    name: test
    for name, test in vars(test_queue).items()
    if name.startswith("test_") and "q" in inspect.signature(test).parameters and name not in _ELSEWHERE
}
globals().update(SHARED)


def test_the_tests_of_the_embedded_queue_are_all_here() -> None:
    assert len(SHARED) >= 27
