"""Each process chooses its transport; a host takes every choice, and calls have one effect over each."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.errors import BadArgument, RingMissing
from fairway.runtime.transport import choosing
from fairway.runtime.transport.rings import RingConnection
from tests.attach.member_script import Child
from tests.ring.need import need_ring

pytestmark = pytest.mark.real


def connection(q: fairway.Queue) -> Any:
    return q._port._member.way._connection  # type: ignore[attr-defined]


def test_what_is_told_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWAY_TRANSPORT", raising=False)
    assert choosing.transport_of(None) == "socket"
    monkeypatch.setattr(choosing, "BUILT", True)
    monkeypatch.setenv("FAIRWAY_TRANSPORT", "ring")
    assert choosing.transport_of(None) == "ring"
    assert choosing.transport_of("socket") == "socket"


@pytest.mark.parametrize("wrong", ["pigeon", "", 7])
def test_a_transport_that_is_none_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(BadArgument, match="transport: socket or ring"):
        fairway.open(tmp_path / "work.db", transport=wrong)
    assert not list(tmp_path.iterdir())


def test_a_wrong_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWAY_TRANSPORT", "pigeon")
    with pytest.raises(BadArgument, match="FAIRWAY_TRANSPORT: socket or ring"):
        fairway.open(tmp_path / "work.db")


def test_a_ring_that_is_not_built_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "BUILT", False)
    with pytest.raises(RingMissing, match="C compiler"):
        fairway.open(tmp_path / "work.db", transport="ring")
    assert not list(tmp_path.iterdir())


def test_one_host_serves_both_and_calls_go_through_the_rings(tmp_path: Path) -> None:
    need_ring()
    path = tmp_path / "work.db"
    with Child() as host:
        host.do(f"use(fairway.open({str(path)!r}))")
        with fairway.open(path, transport="ring") as q:
            for n in range(20):
                q.put(b"%d" % n, tenant="t")
            with Child() as other:
                other.do(f"use(fairway.open({str(path)!r}, host=False, transport='socket'))")
                other.do("q.put(b'from the socket').id")
            leases = q.reserve(max=100)
            assert sorted(lease.payload for lease in leases) == sorted(
                [*(b"%d" % n for n in range(20)), b"from the socket"]
            )
            assert isinstance(connection(q), RingConnection)
            assert connection(q)._put >= 20 and connection(q)._taken >= 20, "the socket was used"
            big = q.submit([bytes(100_000)] * 20, tenant="t")  # too long for a ring
            assert q.submission(big.id).total == 20
            again = pickle.loads(pickle.dumps(q))
            assert again._port._member.transport == "ring"
            again.close()


def test_a_call_goes_to_the_next_host_over_new_rings(tmp_path: Path) -> None:
    need_ring()
    path = tmp_path / "work.db"
    with Child() as first, Child() as second:
        first.do(f"use(fairway.open({str(path)!r}))")
        with fairway.open(path, host=False, transport="ring") as q:
            q.put(b"before")
            old = connection(q)
            second.do(f"use(fairway.open({str(path)!r}))")
            first.kill()
            q.put(b"after")
            assert connection(q) is not old
            assert sorted(lease.payload for lease in q.reserve(max=9)) == [b"after", b"before"]
            q.put(b"more")
            assert connection(q)._put > 0
