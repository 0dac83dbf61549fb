"""`fairway.work`: what it does with results, failures, leases, signals and processes, on a file and on a server."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest

import fairway
from fairway import limits
from fairway.errors import all_errors
from fairway.worker.crew import Crew
from fairway.worker.ending import Ending
from fairway.worker.loop import Loop
from fairway.worker.tally import CELLS, Tally
from tests.server.live import live, served
from tests.work import functions

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield str(tmp_path / "work.db")
    else:
        with live(tmp_path) as server:
            yield server.url


def until(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


class Running:
    """`work` in a thread, to be stopped by the test."""

    def __init__(self, url: str, fn: Callable[[fairway.Lease], bytes | None], **options: object) -> None:
        self.stop, self.ended = threading.Event(), threading.Event()
        self.result: list[object] = []
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self.result.append(fairway.work(url, fn, stop=self.stop, **options))  # type: ignore[arg-type]
            except BaseException as error:
                self._error = error
            self.ended.set()

        self._thread = threading.Thread(target=run)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    def error(self) -> BaseException | None:
        """By which it ends, without being told to."""
        until(self.ended.is_set, 30)
        error, self._error = self._error, None
        return error


@pytest.mark.parametrize("batch", [1, 7])
def test_a_function_is_run_on_every_chunk_and_its_bytes_are_the_results(url: str, batch: int) -> None:
    with fairway.open(url) as q:
        sub = q.submit([b"%02d" % i for i in range(20)])
        assert fairway.work(url, functions.reverse, batch=batch, stop_when_empty=True) == 20
        assert q.submission(sub).state == "completed"
        assert [result.data for result in q.results(sub)] == [(b"%02d" % i)[::-1] for i in range(20)]


def test_an_exception_fails_the_chunk_and_it_is_tried_again(url: str) -> None:
    tries: list[int] = []

    def fails_first(lease: fairway.Lease) -> None:
        tries.append(lease.attempt)
        if lease.attempt == 1:
            raise ValueError("not today")

    with fairway.open(url) as q:
        q.configure(retry_delay_seconds=0)
        sub = q.put(b"x")
        with Running(url, fails_first):
            assert q.wait(sub.id, 60).state == "completed"
        assert tries == [1, 2]


class _Untold(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("jobs", [1, 2])
def test_whatever_a_function_raises_fails_its_chunk_and_no_other(jobs: int) -> None:
    raised = [
        SystemExit(0),
        asyncio.CancelledError(),
        GeneratorExit(),
        _Untold(),
        SyntaxError("x", ("f", 1, "a", "t")),  # type: ignore[arg-type]
    ]

    def raises(lease: fairway.Lease) -> None:
        if lease.index < len(raised):
            raise raised[lease.index]

    with fairway.open(":memory:") as q:
        q.submit(chunks=len(raised) + 3, attempts_max=1, policy="dead_letter")
        options = {"strategy": None, "batch": 4, "lease_seconds": 60.0, "stop_when_empty": True}
        tally, said = Tally(), list[str]()
        Crew(q, raises, jobs, own_process=False, tally=tally, say=said.append, **options).run()
        dead = {one.index: one.error for one in q.dead()}
        assert (tally.sums().done, tally.sums().failed) == (3, len(raised))
        assert all(type(error).__name__ in dead[index] for index, error in enumerate(raised))
        assert len(said) == len(raised)


@pytest.mark.real
def test_a_process_whose_function_ends_it_with_0_is_started_again(tmp_path: Path) -> None:
    path = str(tmp_path / "work.db")
    with fairway.open(path) as q, Running(path, functions.leave_once, processes=2, lease_seconds=1):
        assert q.wait(q.submit([b"x"] * 4), 60).state == "completed"


def test_what_a_function_makes_of_its_stop_is_no_failure(tmp_path: Path) -> None:
    began = threading.Event()

    def turns(lease: fairway.Lease) -> None:
        began.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            raise OSError("the connection is in no state to be closed")

    with fairway.open(":memory:") as q:
        q.put(b"x", attempts_max=1)
        tally = Tally()
        options = {"strategy": None, "batch": 1, "lease_seconds": 60.0, "stop_when_empty": False}
        crew = Crew(q, turns, own_process=False, tally=tally, **options)
        thread = threading.Thread(target=crew.run)
        thread.start()
        assert began.wait(30)
        crew.drain()
        crew.drain()
        thread.join(60)
        assert (tally.sums().failed, tally.sums().released) == (0, 1)
        assert q.reserve()[0].attempt == 1


@pytest.mark.parametrize("line", range(1, 6))
def test_a_stop_that_comes_as_the_function_ends_leaves_nothing_running(line: int) -> None:
    """Else its lease would be thought to be worked on, and its process ended for not stopping."""
    left, before = line, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if frame.f_code in (Loop._call.__code__, Loop._ended.__code__) and event == "line" and loop._running:
            left -= 1
            if left == 0:
                loop.draining, loop._stopping = True, loop._running
                signal.raise_signal(signal.SIGUSR2)
        return trace

    with fairway.open(":memory:") as q:
        q.put(b"x")
        options = {"strategy": None, "batch": 1, "lease_seconds": 60.0, "stop_when_empty": True}
        loop = Loop(q, functions.reverse, own_process=False, tally=Tally(), **options)  # type: ignore[arg-type]
        sys.settrace(trace)
        try:
            loop.run()
        finally:
            sys.settrace(before)
    assert left == 0 and loop._running is None


def test_what_a_function_must_not_return_is_told(url: str) -> None:
    with fairway.open(url) as q:
        q.put(b"x", attempts_max=1)
        fairway.work(url, lambda lease: "text", stop_when_empty=True)  # type: ignore[arg-type, return-value]
        assert "returns bytes or None, not str" in next(q.dead()).error


def test_an_error_is_told_from_the_functions_first_line_on(url: str) -> None:
    def inner() -> None:
        raise ValueError("cannot read this")

    def outer(lease: fairway.Lease) -> None:
        inner()

    with fairway.open(url) as q:
        q.put(b"x", attempts_max=1)
        fairway.work(url, outer, stop_when_empty=True)
        said = next(q.dead()).error
    assert said.startswith("Traceback") and said.rstrip().endswith("ValueError: cannot read this")
    assert "in outer" in said and "in inner" in said and "loop.py" not in said


def test_leases_are_renewed_while_a_function_runs(url: str) -> None:
    seen: list[int] = []

    def slow(lease: fairway.Lease) -> None:
        seen.append(lease.attempt)
        while time.time() < lease.deadline + 0.5:  # of the first lease, for the second chunk too
            time.sleep(0.05)

    with fairway.open(url) as q:
        q.submit([b"a", b"b"])
        assert fairway.work(url, slow, batch=2, lease_seconds=8, stop_when_empty=True) == 2
        assert seen == [1, 1]
        assert "expired" not in {event.what for event in q.events()}


def test_a_function_is_stopped_when_its_lease_is_over(url: str) -> None:
    began: list[bytes | None] = []
    ended: list[tuple[bytes | None, str]] = []

    def endless(lease: fairway.Lease) -> None:
        began.append(lease.payload)
        try:
            while True:
                time.sleep(0.01)
        except BaseException as error:
            ended.append((lease.payload, type(error).__name__))
            raise

    with fairway.open(url) as q, Running(url, endless, lease_seconds=3):
        sub = q.submit([b"x"])
        until(lambda: b"x" in began)
        q.cancel(sub)
        done = q.put(b"next", tenant="next")
        until(lambda: b"next" in began)  # it goes on with other work
        assert set(ended) == {(b"x", "Stopped")}
        q.cancel(done)
        until(lambda: (b"next", "Stopped") in ended)


def test_a_stop_gives_back_what_was_not_begun(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began, heard, go_on = threading.Event(), threading.Event(), threading.Event()
    drain = Crew.drain
    monkeypatch.setattr(Crew, "drain", lambda crew: (drain(crew), heard.set()))

    def waits(lease: fairway.Lease) -> None:
        began.set()
        assert go_on.wait(60)

    with fairway.open(url) as q:
        q.submit(chunks=5)
        with Running(url, waits, batch=5) as running:
            assert began.wait(30)
            running.stop.set()
            assert heard.wait(60)
            go_on.set()
        assert running.result == [1]
        stats = q.stats()
        assert (stats.chunks_done, stats.chunks_waiting, stats.chunks_leased) == (1, 4, 0)
        assert q.reserve()[0].attempt == 1


def test_idle_workers_wait_longer_and_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    real = fairway.Queue.reserve

    def noted(self: fairway.Queue, *args: object, **kwargs: object) -> object:
        waits.append(float(kwargs["wait_seconds"]))  # type: ignore[arg-type]
        kwargs["wait_seconds"] = 0.01
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(fairway.Queue, "reserve", noted)
    with Running(str(tmp_path / "w.db"), functions.reverse):
        until(lambda: len(waits) > 6)
    assert waits[:2] == [limits.IDLE_SECONDS, 2 * limits.IDLE_SECONDS]
    assert waits[6] == limits.IDLE_SECONDS_MAX


@pytest.mark.parametrize("refused", [fairway.TooManyCalls, fairway.Busy, fairway.Unreachable])
def test_a_worker_that_is_turned_away_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: type[fairway.FairwayError]
) -> None:
    real, left = fairway.Queue.reserve, [refused(), refused()]

    def turned_away(self: fairway.Queue, *args: object, **kwargs: object) -> object:
        if left:
            raise left.pop()
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    with fairway.open(tmp_path / "w.db") as q:
        q.submit([b"x"])
    monkeypatch.setattr(fairway.Queue, "reserve", turned_away)
    assert fairway.work(tmp_path / "w.db", functions.reverse, stop_when_empty=True) == 1


def test_bad_arguments_are_refused_before_anything_is_opened(tmp_path: Path) -> None:
    async def coroutine(lease: fairway.Lease) -> None: ...

    for given in (
        {"processes": 0}, {"batch": 0}, {"lease_seconds": 0}, {"strategy": "Nonsense("}, {"fn": coroutine}, {"fn": 7},
        {"fn": lambda lease: None, "processes": 2},
    ):  # fmt: skip
        with pytest.raises(fairway.CallerError):
            fairway.work(tmp_path / "w.db", **{"fn": functions.reverse, **given})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_queue_in_memory_is_not_worked_on_by_several_processes() -> None:
    with pytest.raises(fairway.BadArgument, match="lives in one process"):
        fairway.work(":memory:", functions.reverse, processes=2, stop_when_empty=True)


@pytest.mark.real
def test_what_is_wrong_with_the_address_is_told_before_processes_are_started(tmp_path: Path) -> None:
    stop = threading.Event()
    late = threading.Timer(20, stop.set)
    late.start()
    try:
        with live(tmp_path) as server:
            server.token("work")
            with pytest.raises(fairway.Unauthorized):
                fairway.work(server.url, functions.reverse, processes=2, token="wrong", stop=stop)
    finally:
        late.cancel()


def test_processes_never_make_a_queue_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, given = str(tmp_path / "work.db"), []

    def family(_: int, opened: Callable[[], fairway.Queue], *more: object) -> SimpleNamespace:
        given.append(opened)
        return SimpleNamespace(run=lambda stop: SimpleNamespace(done=0))

    monkeypatch.setattr("fairway.worker.working.Family", family)
    fairway.work(path, functions.reverse, processes=2)
    with given[0]() as q:
        assert q.name == "default"
    fairway.delete(path, "default")
    with pytest.raises(fairway.NotFound):
        given[0]()


@pytest.mark.real
@pytest.mark.parametrize("processes", [1, 2])
def test_work_ends_when_its_queue_is_deleted(url: str, processes: int) -> None:
    fairway.open(url).close()
    with Running(url, functions.tell_pid, processes=processes) as running:
        with fairway.open(url) as q:
            assert q.wait(q.put(b"x"), 60).state == "completed"
        fairway.delete(url, "default")
        assert isinstance(running.error(), fairway.NotFound | fairway.QueueDeleted)


@pytest.mark.real
@pytest.mark.parametrize("processes", [1, 2])
def test_work_ends_when_its_token_is_revoked(tmp_path: Path, processes: int) -> None:
    with live(tmp_path) as server, fairway.open(server.url, token=server.token("submit", "read")) as q:
        token = server.token("work", "read")
        with Running(server.url, functions.tell_pid, processes=processes, token=token) as running:
            assert q.wait(q.put(b"x"), 60).state == "completed"
            server.tokens.revoke(server.tokens.find(token).id)
            error = running.error()
            assert isinstance(error, fairway.Unauthorized) and "token" in str(error)


@pytest.mark.real
def test_work_ends_when_what_is_started_again_finds_no_queue_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    fairway.open(path).close()
    ran = Running(str(path), functions.die_once, processes=2, lease_seconds=1)
    with ran as running, fairway.open(path) as q:
        assert q.wait(q.put(b"x"), 60).state == "completed"
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(b"no queue" * 1000)
        q.put(b"die")
        assert isinstance(running.error(), fairway.NotFairway | fairway.StoreCorrupt)


_UNGUARDED = """
import sys
import fairway
def function(lease): ...
fairway.work(sys.argv[1], function, processes=2)
"""


@pytest.mark.real
@pytest.mark.parametrize("where", ["script.py", "-"])
def test_a_program_that_other_processes_cannot_import_is_told_so(tmp_path: Path, where: str) -> None:
    (tmp_path / "script.py").write_text(_UNGUARDED)
    done = subprocess.run(
        [sys.executable, where, "work.db"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        input=_UNGUARDED,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "fairway.errors.BadArgument: no other process can begin with fn"
    )


def ending() -> Ending:
    context = multiprocessing.get_context("spawn")
    return Ending(context, context.RawValue("b", True))


def test_a_process_tells_its_last_error_as_it_is() -> None:
    left = ending()
    assert not left.by_itself(0)
    left.tell(None)
    assert left.by_itself(-11)
    left.tell(fairway.NotFound("there is no queue '\udc80\0'", queue="q"))
    with pytest.raises(fairway.NotFound, match="there is no queue"):
        left.by_itself(0)
    left.tell(fairway.Forbidden("\x01" * 100_000, why="x" * 100_000))
    with pytest.raises(fairway.Forbidden, match=r"^\x01{1000}"):
        left.by_itself(0)
    left.open()
    assert not left.by_itself(0)


def test_an_error_is_final_if_starting_again_does_not_cure_it() -> None:
    final = {kind for kind in all_errors().values() if kind.final}
    mistakes = {kind for kind in all_errors().values() if issubclass(kind, fairway.CallerError)}
    assert final == mistakes - {fairway.SlowBody} | {fairway.QueueDeleted, fairway.StoreCorrupt}


def test_several_processes_share_the_work(url: str) -> None:
    with fairway.open(url) as q:
        sub = q.submit([b"x"] * 150)
        assert fairway.work(url, functions.tell_pid, processes=2, batch=3, stop_when_empty=True) == 150
        pids = {result.data for result in q.results(sub)}
        assert q.submission(sub).state == "completed"
        assert str(os.getpid()).encode() not in pids


@pytest.mark.real
def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    path = str(tmp_path / "work.db")
    with fairway.open(path) as q:
        sub = q.submit([b"die", b"x", b"y"])
        fairway.work(path, functions.die_once, processes=2, lease_seconds=1, stop_when_empty=True)
        until(lambda: q.stats().chunks_leased == 0)
        fairway.work(path, functions.die_once, stop_when_empty=True)
        assert q.submission(sub).state == "completed"


def test_a_limit_counts_what_was_begun_and_not_what_a_process_waited_for_as_it_died() -> None:
    cells = [0] * CELLS
    died, again = Tally(5, cells), Tally(5, cells)
    died.begin(2, died.ask(3))
    assert [died.ask(2), died.ask(2), died.ask(2)] == [2, 1, 0]
    assert again.ask(9) == 3
    again.begin(3, 3)
    assert again.ask(1) == 0


@pytest.mark.real
@pytest.mark.parametrize("fails", [2, 3])
def test_a_process_that_cannot_be_started_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    """The second is one of the first, and its error is told; the third is started in the place of one that died."""
    path, starts = str(tmp_path / "work.db"), []
    real = SpawnProcess.start

    def start(process: SpawnProcess) -> None:
        starts.append(process)
        if len(starts) == fails:
            raise BlockingIOError(11, "no more processes")
        real(process)

    monkeypatch.setattr(SpawnProcess, "start", start)
    with fairway.open(path) as q:
        sub = q.submit([b"die", b"x", b"y"])
        with Running(path, functions.die_once, processes=2, lease_seconds=1) as running:
            if fails == 2:
                error = running.error()
                assert isinstance(error, fairway.OurError) and "no more processes" in str(error)
            else:
                assert q.wait(sub, 60).state == "completed"
                until(lambda: len(starts) == 4)
    assert not multiprocessing.active_children()


@pytest.mark.real
def test_a_call_that_blocks_is_left_when_the_lease_is_over(tmp_path: Path) -> None:
    path = str(tmp_path / "work.db")
    with fairway.open(path) as q, Running(path, functions.block, processes=2, lease_seconds=1.5):
        sub = q.submit([str(tmp_path).encode()] * 2)
        until(lambda: len(list(tmp_path.glob("pid-*"))) == 2)
        q.cancel(sub)
        asked = q.submit([b"who"], tenant="b")
        assert q.wait(asked, 60).state == "completed"
        (who,) = [result.data for result in q.results(asked)]
        assert who is not None and (tmp_path / f"pid-{who.decode()}").exists(), "the same process goes on"


def test_a_process_that_stood_still_has_its_whole_time_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is frozen as its lease ends; what it does then is the function's end, and not its own."""
    now, ended = [0.0], []

    def still(seconds: float) -> None:
        now[0] += 60  # for the whole machine
        if now[0] > 100:
            monkeypatch.setattr(loop, "_running", None)

    with fairway.open(":memory:") as q:
        q.put(b"x")
        (lease,) = q.reserve()
        options = {"strategy": None, "batch": 1, "lease_seconds": 1.0, "stop_when_empty": True}
        loop = Loop(q, functions.reverse, own_process=True, tally=Tally(), **options)  # type: ignore[arg-type]
        monkeypatch.setattr(loop, "_running", lease)
        monkeypatch.setattr(loop, "_stop", lambda lease: None)
        monkeypatch.setattr("fairway.worker.loop.os._exit", ended.append)
        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=still)
        monkeypatch.setattr("fairway.worker.loop.time", clock)
        loop._lost(lease)
    assert ended == [] and loop._running is None


_LONELY = """
import sys
import fairway
from tests.work.functions import run_until_stopped
if __name__ == "__main__":
    fairway.work(sys.argv[1], run_until_stopped, lease_seconds=2.0)
"""


@pytest.mark.real
def test_a_function_is_stopped_at_its_lease_end_though_no_server_answers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_LONELY)
    with served(tmp_path, "--workers", "0", "--queue", "default") as server, fairway.open(server.url) as q:
        q.submit([str(tmp_path).encode()])
        worker = subprocess.Popen(
            [sys.executable, str(script), server.url],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: (tmp_path / "began").exists())
            # The renewal under way, and all that follow it, are repeated for CLIENT_RETRY_SECONDS.
            assert limits.CLIENT_RETRY_SECONDS > 45
            server.process.kill()
            server.process.wait()
            killed = time.monotonic()
            until(lambda: (tmp_path / "Stopped").exists())
            assert time.monotonic() - killed < 30
        finally:
            worker.kill()
            worker.wait()


_SCRIPT = """
import sys
import fairway
from tests.work import functions
if __name__ == "__main__":
    function = getattr(functions, sys.argv[3])
    print("completed", fairway.work(sys.argv[1], function, batch=3, processes=int(sys.argv[2])))
"""


def _worker(folder: Path, processes: int, function: str) -> subprocess.Popen[str]:
    """A worker in a group of its own."""
    script = folder / "script.py"
    script.write_text(_SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder / "work.db"), str(processes), function],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _as_a_service(pid: int, number: int) -> None:
    """To all processes of a group at once; the parent heeds it a moment later than its children."""
    os.kill(pid, signal.SIGSTOP)
    os.killpg(pid, number)
    time.sleep(0.2)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.real
@pytest.mark.parametrize(("processes", "send"), [(1, os.kill), (2, os.kill), (2, _as_a_service)])
def test_sigterm_drains(tmp_path: Path, processes: int, send: Callable[[int, int], None]) -> None:
    """Also if it reaches all processes at once, as from a service manager."""
    with fairway.open(tmp_path / "work.db") as q:
        q.submit([str(tmp_path).encode()] * 30)
        worker = _worker(tmp_path, processes, "mark_and_sleep")
        until(lambda: len(list(tmp_path.glob("began-*"))) >= processes)
        send(worker.pid, signal.SIGTERM)
        out, _ = worker.communicate(timeout=90)
        assert worker.returncode == 0
        began, ended = len(list(tmp_path.glob("began-*"))), len(list(tmp_path.glob("ended-*")))
        assert began == ended, "what was begun was finished"
        stats = q.stats()
        assert (stats.chunks_done, stats.chunks_leased) == (ended, 0)
        assert out.strip() == f"completed {ended}"


@pytest.mark.real
def test_a_second_signal_stops_the_functions_of_all_processes(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        q.submit([str(tmp_path).encode()] * 2)
        worker = _worker(tmp_path, 2, "block")
        until(lambda: list(tmp_path.glob("pid-*")))
        for _ in range(2):
            worker.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        out, _ = worker.communicate(timeout=90)
        assert (worker.returncode, out.strip()) == (0, "completed 0")
        assert [lease.attempt for lease in q.reserve(2)] == [1, 1]
