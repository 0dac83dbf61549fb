"""Renewing: a source says from a thread that it lives, while Spark works on what it handed out.

Guards: a batch may take longer than the silence after which a consumer's reservations lapse.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from fairway.errors import ConsumerFenced, FairwayError
from fairway.limits import SPARK_RENEW_SECONDS


class Heart:
    """Beats until its process ends or its consumer is taken over."""

    def __init__(self, beat: Callable[[int], object]) -> None:
        self._beat = beat
        self._seq = 0
        self._every = SPARK_RENEW_SECONDS
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, seq: int, silence: float) -> None:
        """This reservation is out, and lapses after so many seconds without a sign."""
        self._every = max(0.05, min(SPARK_RENEW_SECONDS, silence / 4))
        self._seq = seq
        if self._thread is None:
            # Spark may end the process without a word, so nothing waits for this thread.
            self._thread = threading.Thread(target=self._live, name="fairway renew", daemon=True)
            self._thread.start()
        else:
            self._wake.set()

    def _live(self) -> None:
        while True:
            if self._wake.wait(self._every):
                self._wake.clear()
                continue
            try:
                self._beat(self._seq)
            except ConsumerFenced:
                return  # the source hears it too, with its next call
            except FairwayError:
                continue  # the queue is between two hosts, or the seq was trimmed: the next beat tells
