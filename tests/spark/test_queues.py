"""Queues as the processes of a job open them: by workers that outlive a file, and by readers that make none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import fairway
import fairway.spark
from fairway.errors import BadArgument, NotFound
from fairway.spark import queues
from fairway.spark.auditing.audit import audit

WORKER = """
import sys

from fairway.spark.queues import attached

for url in sys.stdin:
    print(attached(url.strip(), "default").stats().chunks_waiting, flush=True)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "work.db")
    fairway.spark.release()


def remove(url: str) -> None:
    for path in Path(url).parent.glob("work.db*"):
        path.unlink()


def seen(worker: subprocess.Popen[str], url: str) -> str:
    """What waits in the queue, as a worker sees it."""
    asked: IO[str] | None = worker.stdin
    assert asked and worker.stdout
    asked.write(f"{url}\n")
    asked.flush()
    return worker.stdout.readline().strip()


def test_a_worker_of_spark_finds_the_queue_of_a_file_that_was_made_anew(url: str) -> None:
    """Spark goes on with its Python workers, also when a notebook removes the file and runs again."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        for chunks in (3, 5):
            with fairway.open(url) as q:
                q.submit(chunks=chunks)
                assert [seen(worker, url), seen(worker, url)] == [str(chunks)] * 2
            remove(url)
        assert worker.stdin
        worker.stdin.close()


def test_what_was_kept_open_to_be_read_does_not_hide_a_file_that_was_made_anew(url: str) -> None:
    with fairway.spark.hosting(url) as q:
        q.submit(chunks=3)
    queues.keep(url, "default")
    remove(url)
    with fairway.spark.hosting(url) as q:
        assert not list(q.submissions())
        q.submit(chunks=5)
    with fairway.open(url, create=False) as q:
        assert q.stats().chunks_waiting == 5


@pytest.mark.parametrize(
    "reading", [lambda url: queues.keep(url, "default"), fairway.spark.sweep, lambda url: audit(None, url)]
)
def test_reading_a_path_where_nothing_is_makes_nothing(url: str, reading: Callable[[str], object]) -> None:
    with pytest.raises(NotFound, match=f"there is no queue at {url}; give the path of its file"):
        reading(url)
    assert not list(Path(url).parent.iterdir())


def test_an_audit_of_a_queue_that_spark_cannot_reach_is_refused_before_it_is_opened() -> None:
    with pytest.raises(BadArgument, match="Start `fairway serve` on the cluster and give the server's URL"):
        audit(None, "cassandra://nobody.invalid/fairway")
