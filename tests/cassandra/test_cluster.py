"""The development cluster: what it is made of, that its nodes never outlive their user, how tests share it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import USAGE, run
from fairway.errors import NeedMissing, OurError
from fairway.testing.cassandra import cluster, jars, java
from fairway.testing.cassandra.sharing import REQUIRE, Address, needed, run_folder, shared


def _gone(pid: int, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def test_a_cluster_has_ports_that_no_connection_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with socket.socket() as held:
        taken = cluster.free_port(3)
        assert taken + 2 < given, "or one that is closed could be gone before its node starts again"
        held.bind(("", taken + 1))
        monkeypatch.setattr(cluster, "_PORT_MIN", taken)
        monkeypatch.setattr(cluster, "_PORT_MAX", taken + 3)
        with pytest.raises(OurError):
            cluster.free_port(2)


@pytest.mark.real
@pytest.mark.parametrize("victim", ["user", "keeper", "nobody: it is told to end"])
def test_no_node_outlives_its_user(tmp_path: Path, victim: str) -> None:
    user = subprocess.Popen(["sleep", "600"])
    command = [sys.executable, "-m", "fairway.testing.cassandra.keeper", str(user.pid)]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert keeper.stdin and keeper.stdout
        order = {"arguments": ["sleep", "600"], "folder": str(tmp_path), "output": str(tmp_path / "log")}
        keeper.stdin.write(json.dumps(order) + "\n")
        keeper.stdin.flush()
        node = int(keeper.stdout.readline())
        assert not _gone(node, 0.5), "it lives while its user does"
        keeper.stdin.close()
        assert not _gone(node, 0.5), "one who started it may leave"
        if victim == "user":
            user.kill()  # nobody has waited for it: it is gone all the same
        else:
            keeper.send_signal(signal.SIGKILL if victim == "keeper" else signal.SIGTERM)
        assert _gone(node)
    finally:
        for process in (user, keeper):
            process.kill()
            process.wait()
        keeper.stdout.close()


def test_a_jar_that_was_not_locked_is_not_used(tmp_path: Path) -> None:
    wanted = jars.locked()
    assert len(wanted) > 50 and all(len(digest) == 64 for digest in wanted.values())
    (tmp_path / "a.jar").write_bytes(b"one")
    digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    jars.check(tmp_path, {"a.jar": digest})
    for lock in ({}, {"a.jar": digest[::-1]}, {"a.jar": digest, "b.jar": digest}):
        with pytest.raises(OurError, match=r"not what was locked.*[ab]\.jar"):
            jars.check(tmp_path, lock)


def test_only_java_17_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("25", "17"):
        home = tmp_path / version
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").touch(0o755)
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}.0.1"\n')
    monkeypatch.setattr(java, "_PLACES", (str(tmp_path),))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "25"))
    monkeypatch.setenv("PATH", "")
    assert java.find_java() == tmp_path / "17" / "bin" / "java"
    monkeypatch.setattr(java, "_PLACES", ())
    with pytest.raises(NeedMissing, match="make system"):
        java.find_java()


def test_what_is_missing_skips_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs Cassandra: no moon"), needed():
        raise NeedMissing("no moon")
    monkeypatch.setenv(REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match="no moon"), needed():
        raise NeedMissing("no moon")


@pytest.mark.real
def test_every_worker_of_a_run_gets_the_same_node(
    cassandra: Address, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert shared(run_folder(tmp_path_factory.getbasetemp())) == cassandra
    assert cassandra.url == f"cassandra://127.0.0.1:{cassandra.port}/"


def test_a_wrong_number_of_nodes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dev", "cassandra", "--nodes", "2"]) == USAGE
    assert "nodes" in capsys.readouterr().err


@contextmanager
def _running(*options: str) -> Iterator[str]:
    """The command, until it is told to stop; gives the URL that it says."""
    code = "from fairway.cli.app import main; main()"
    command = [sys.executable, "-c", code, "dev", "cassandra", *options]
    env = {**os.environ, "COLUMNS": "200"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    )
    try:
        assert process.stdout
        if "--json" in options:  # one line, and nothing else
            told = json.loads(process.stdout.readline())
            assert told["port"] == int(options[options.index("--port") + 1])
            url = told["url"]
        else:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C" in line:
                    break
            (url,) = re.findall(r'fairway.open\("(.*)"\)', "".join(lines))
        yield url
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("nodes", ["1", pytest.param("3", marks=pytest.mark.proof)])
def test_the_command_runs_a_cluster_until_it_is_told_to_stop_and_uses_its_folder_again(
    cassandra: Address, tmp_path: Path, nodes: str
) -> None:
    # After the fixture: the machine has what it needs.
    options = ("--nodes", nodes, "--dir", str(tmp_path / "kept"), "--port", str(cluster.free_port()))
    with _running(*options) as url, fairway.open(url) as q:
        assert url.count("127.0.0.") == int(nodes)
        q.put(b"kept")
    with _running(*options, "--json") as url, fairway.open(url, create=False) as q:
        assert [lease.payload for lease in q.reserve()] == [b"kept"]
