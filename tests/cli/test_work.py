"""`fairway work`: each chunk is run, answered by how it went, and given back when the worker is told to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.cli.app import DONE, FAILED
from fairway.cli.running import command_of
from fairway.limits import PAYLOAD_BYTES_MAX
from fairway.worker.tally import Sums
from fairway.worker.working import run_here
from tests.cli.conftest import Cli


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def results(file: Path, tenant: str) -> list[bytes | None]:
    with fairway.open(file) as q:
        (job,) = q.submissions(tenant=tenant)
        return [result.data for result in q.results(job.id)]


def test_a_shell_command_gets_the_payload_and_gives_the_result(cli: Cli, file: Path) -> None:
    told = cli("work", file, "tr a-z A-Z", "--until-empty", "--json")
    assert (told.code, told.json) == (DONE, {"done": 13, "failed": 0, "lost": 0, "released": 0})
    assert results(file, "acme") == [b"ONE", b"TWO", b"THREE"]
    assert results(file, "whale") == [], "what prints nothing has no result"


def test_several_words_are_a_program_and_are_told_of_the_chunk(cli: Cli, tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        job = q.submit(chunks=2, tenant="acme", metadata={"n": 5}, info=b"see $HOME")
    script = (
        "import os, json; e = os.environ; print(e['FAIRWAY_TENANT'], e['FAIRWAY_INDEX'], e['FAIRWAY_ATTEMPT'],"
        " json.loads(e['FAIRWAY_META'])['n'], e['FAIRWAY_INFO'], e['FAIRWAY_SUBMISSION'], end='')"
    )
    told = cli("work", "work.db", "--jobs", 2, "--until-empty", "--json", "--", sys.executable, "-c", script)
    assert told.json["done"] == 2
    assert results(Path("work.db"), "acme") == [f"acme {i} 1 5 see $HOME {job.id}".encode() for i in range(2)]


def test_how_a_command_ends_decides_what_becomes_of_the_chunk(cli: Cli, tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        q.configure(retry_delay_seconds=0.0)
        for code in ("0", "3", "65"):
            q.put(code.encode(), tenant=code)
    told = cli(
        "work", "work.db", 'read -r code; echo "said $code" >&2; exit $code', "--until-empty", "--json"
    )
    assert (told.json["done"], told.json["failed"]) == (1, 6), (
        "one is tried five times, one is given up at once"
    )
    dead = {one["tenant"]: one for one in cli("dead", "work.db", "--json").jsons}
    assert (dead["3"]["attempts"], dead["3"]["error"]) == (5, "exit code 3: said 3")
    assert (dead["65"]["attempts"], dead["65"]["error"]) == (1, "exit code 65: said 65")


def test_a_function_is_called_with_leases(cli: Cli, file: Path) -> None:
    Path("pages_of_a_test.py").write_text(
        "def render(lease):\n"
        "    if lease.tenant == 'whale':\n"
        "        raise ValueError('too big')\n"
        "    return lease.payload[::-1]\n"
        "def odd(lease):\n"
        "    return 5\n"
    )
    words = ["work", file, "--until-empty", "--batch", 4]
    told = cli(*words, "--function", "pages_of_a_test:render", "--json")
    assert told.json["done"] == 3 and told.json["failed"] >= 1
    assert results(file, "acme") == [b"eno", b"owt", b"eerht"]
    with fairway.open(file) as q:
        q.put(b"x", tenant="odd")
    told = cli(*words, "--function", "pages_of_a_test:odd", "--strategy", 'SelectOnly("tenant", "odd", Fair)')
    assert "returns bytes or None, not int" in told.err
    assert [one["tenant"] for one in cli("dead", file, "--json").jsons] == ["odd"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "say what to do"),
        (["cat", "--function", "os:getcwd"], "say what to do"),
        (["--function", "nocolon"], "write module:function"),
        (["--function", "no.such.module:f"], "cannot be found"),
        (["--function", "os:nothing"], "cannot be found"),
        (["--function", "os:sep"], "name a function"),
        (["--function", "os:getcwd", "--timeout", "5s"], "cannot be ended"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_reserved(
    cli: Cli, file: Path, words: list[str], why: str
) -> None:
    told = cli("work", file, *words)
    assert told.code == FAILED and why in told.err
    with fairway.open(file) as q:
        assert q.stats().chunks_leased == 0


def test_a_program_that_is_not_there_fails_the_chunk(cli: Cli, file: Path) -> None:
    told = cli("work", file, "--limit", 1, "--json", "--", "no-such-program", "x")
    assert told.json == {"done": 0, "failed": 1, "lost": 0, "released": 0}


def test_no_more_than_the_limit_is_done(cli: Cli, file: Path) -> None:
    told = cli("work", file, "true", "--limit", 5, "--jobs", 3, "--batch", 4, "--json")
    assert told.json == {"done": 5, "failed": 0, "lost": 0, "released": 0}
    with fairway.open(file) as q:
        assert (q.stats().chunks_waiting, q.stats().chunks_leased) == (8, 0)


def test_a_command_that_takes_too_long_is_ended_with_its_children(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, communicate = Path("child"), subprocess.Popen.communicate

    def late(process: subprocess.Popen[bytes], *given: Any) -> Any:
        until(child.exists)  # its time begins when it has a child
        return communicate(process, *given)

    monkeypatch.setattr(subprocess.Popen, "communicate", late)
    command = "sleep 600 & echo $! > part; mv part child; wait"
    told = cli("work", file, command, "--timeout", "300ms", "--limit", 1, "--json")
    assert told.json["failed"] == 1
    until(lambda: not alive(int(child.read_text())))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_lease_is_renewed_as_long_as_the_work_goes_on(cli: Cli, file: Path) -> None:
    script = "test -e slow || { touch slow; sleep 9; }; cat"  # both leases are held meanwhile
    told = cli("work", file, script, "--lease", "8s", "--batch", 2, "--limit", 2, "--json")
    assert told.json == {"done": 2, "failed": 0, "lost": 0, "released": 0}
    with fairway.open(file) as q:
        assert not [event for event in q.events() if event.what == "expired"]
        assert [event for event in q.events() if event.what == "renewed"]


def test_work_that_is_cancelled_is_ended_and_counted_as_lost(file: Path) -> None:
    with fairway.open(file) as q:
        whale = next(q.submissions(tenant="whale"))
        options = {
            "strategy": 'SelectOnly("tenant", "whale", Fair)',
            "lease_seconds": 6.0,
            "batch": 1,
            "stop_when_empty": False,
        }
        tallies: list[Sums] = []
        command = command_of(["sleep 600"], None)
        thread = threading.Thread(target=lambda: tallies.append(run_here(q, command, options, limit=1)))
        thread.start()
        until(lambda: q.stats().chunks_leased)
        q.cancel(whale.id)
        thread.join(60)
        assert [tally.lost for tally in tallies] == [1]


# A line is written for every signal that was heard: two that come at once are one.
_HEARD = """
from fairway.cli.app import main
from fairway.worker.crew import Crew
drain = Crew.drain
def heard(crew):
    drain(crew)
    with open({path!r}, "a") as file:
        file.write("heard\\n")
Crew.drain = heard
main()
"""


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def start(file: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            _HEARD.format(path=str(file.with_name("heard"))),
            "work",
            str(file),
            *words,
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.real
def test_sigterm_finishes_what_is_begun_and_gives_the_rest_back(file: Path, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    script = f"echo x >> {begun}; while ! test -e {go}; do sleep 0.05; done"
    with start(file, "--batch", "5", script) as worker:
        until(begun.exists)
        worker.send_signal(signal.SIGTERM)
        until(lambda: lines_of(tmp_path / "heard") == 1)
        time.sleep(0.3)
        assert worker.poll() is None, "it does not leave its work"
        go.touch()
        out, err = worker.communicate(timeout=60)
    assert (worker.returncode, err) == (DONE, "")
    assert json.loads(out) == {"done": 1, "failed": 0, "lost": 0, "released": 4}
    with fairway.open(file) as q:
        assert (q.stats().chunks_leased, q.stats().chunks_waiting) == (0, 12)


@pytest.mark.real
def test_a_second_signal_ends_the_work_and_no_attempt_counts(file: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with start(
        file, "--strategy", "OldestFirst", f"echo $$ > {begun}.part; mv {begun}.part {begun}; sleep 600"
    ) as worker:
        until(begun.exists)
        worker.send_signal(signal.SIGINT)
        until(lambda: lines_of(tmp_path / "heard") == 1)
        worker.send_signal(signal.SIGINT)
        out, _ = worker.communicate(timeout=60)
    assert (worker.returncode, json.loads(out)["released"]) == (DONE, 1)
    until(lambda: not alive(int(begun.read_text())))
    with fairway.open(file) as q:
        (lease,) = q.reserve(strategy="OldestFirst")
        assert lease.attempt == 1


@pytest.mark.real
def test_a_worker_hosts_and_others_work_beside_it(cli: Cli, file: Path) -> None:
    with start(file, "tr a-z A-Z") as worker:
        until(lambda: "no process" not in cli("put", file, "-t", "late", "hello").err)
        id = cli("put", file, "-t", "later", "hello", "--json").json["id"]
        assert cli("status", file, id, "--wait", "--timeout", "60s", "--json").json["done"] == 1
        assert cli("results", file, id).out == "HELLO\n"
        os.kill(worker.pid, signal.SIGTERM)
        worker.communicate(timeout=60)
    assert worker.returncode == DONE


@pytest.mark.real
def test_processes_share_the_work_and_the_limit(cli: Cli, file: Path) -> None:
    with start(file, "--processes", "2", "--limit", "7", "--batch", "2", "echo $PPID") as worker:
        out, err = worker.communicate(timeout=120)
    assert (worker.returncode, err) == (DONE, "")
    assert json.loads(out) == {"done": 7, "failed": 0, "lost": 0, "released": 0}
    with fairway.open(file) as q:
        who = {result.data for one in q.submissions() for result in q.results(one.id)}
        assert (q.stats().chunks_waiting, q.stats().chunks_leased, len(who)) == (6, 0, 2)


@pytest.mark.real
def test_a_function_that_blocks_is_stopped_when_its_lease_is_lost(cli: Cli, file: Path) -> None:
    Path("blocks_of_a_test.py").write_text(
        "import pathlib, time\n"
        "def block(lease):\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(600 if lease.tenant == 'whale' else 0)\n"
    )
    words = ("--function", "blocks_of_a_test:block", "--lease", "9s", "--limit", "2")
    with fairway.open(file) as q:
        jobs = {job.tenant: job for job in q.submissions()}
        q.cancel(jobs["acme"].id)
        with start(file, *words) as worker:
            until(Path("begun").exists)
            q.cancel(jobs["whale"].id)
            q.put(b"after", tenant="small")
            out, _ = worker.communicate(timeout=120)
    assert json.loads(out) == {"done": 1, "failed": 0, "lost": 1, "released": 0}


def test_a_result_that_is_refused_fails_its_chunk_alone(cli: Cli, tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        q.put_many([b"1", b"%d" % (PAYLOAD_BYTES_MAX + 1), b"2"])
    script = "read -r n; head -c $n /dev/zero"
    told = cli("work", "work.db", script, "--until-empty", "--batch", 3, "--json")
    assert told.json == {"done": 2, "failed": 1, "lost": 0, "released": 0}
    (dead,) = cli("dead", "work.db", "--json").jsons
    assert dead["attempts"] == 1, "it would be as large the next time"
