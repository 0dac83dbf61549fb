"""`cassandra://`: what a URL, the environment and options say, and what is said about mistakes."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import fairway
from fairway.errors import BadArgument, NeedMissing, StoreFailed
from fairway.store.cassandra import Address
from fairway.store.cassandra.opening import _copies


def test_a_url_says_everything(tmp_path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    found = Address.parse(
        f"cassandra://ann:p%40ss@h1,h2:9999,[::1]:7/work?dc=east&consistency=LOCAL_QUORUM&ca={ca}&replication=2",
        {},
        {},
    )
    assert found.hosts == (("h1", 9042), ("h2", 9999), ("::1", 7))
    assert (found.user, found.password, found.keyspace, found.dc) == ("ann", "p@ss", "work", "east")
    assert (found.consistency, found.tls, found.ca, found.replication) == ("local_quorum", True, str(ca), 2)
    plain = Address.parse("cassandra://h1", {}, {})
    assert (plain.hosts, plain.keyspace, plain.consistency, plain.tls) == (
        (("h1", 9042),), "fairway", "quorum", False,
    )  # fmt: skip


def test_an_option_wins_over_the_url_and_the_url_over_the_environment() -> None:
    around = {
        "FAIRWAY_CASSANDRA_PASSWORD": "env",
        "FAIRWAY_CASSANDRA_DC": "env",
        "FAIRWAY_CASSANDRA_USER": "env",
    }
    found = Address.parse("cassandra://ann@h/k?dc=url", {"user": "option", "tls": True}, around)
    assert (found.user, found.dc, found.password, found.tls) == ("option", "url", "env", True)


def test_a_password_is_never_shown() -> None:
    found = Address.parse("cassandra://ann:secret@h/k", {}, {})
    assert "secret" not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("cassandra:///k", "hosts are host"),
        ("cassandra://h:port/k", "hosts are host"),
        ("cassandra://h:70000/k", "hosts are host"),
        ("cassandra://h/Work", "a keyspace is"),
        ("cassandra://h/k?consistency=one", "nothing weaker"),
        ("cassandra://h/k?tls=perhaps", "tls is"),
        ("cassandra://h/k?ca=/no/such/file", "no file"),
        ("cassandra://h/k?replication=0", "copies"),
        ("cassandra://h/k?realm=", "realm is"),
        ("cassandra://h/k?color=red", "no setting 'color'"),
        ("cassandra://h/k?color", "name=value"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(url: str, says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        fairway.open(url)


def test_options_of_a_cluster_are_refused_elsewhere(tmp_path) -> None:
    for more in ({"standby": True}, {"options": {"dc": "east"}}):
        with pytest.raises(BadArgument, match="cassandra://"):
            fairway.open(tmp_path / "work.db", **more)
    with pytest.raises(BadArgument, match="no host to attach"):
        fairway.open("cassandra://h/k", host=False)


def test_hosts_without_an_address_are_named() -> None:
    with pytest.raises(StoreFailed, match=r"no address is found for nowhere\.invalid, neither\.invalid"):
        fairway.open("cassandra://nowhere.invalid,neither.invalid/work")


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.split(".")[0] == "cassandra" or name.startswith(
            ("fairway.store.cassandra", "fairway.runtime.owning", "fairway.runtime.clusters")
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cassandra", None)
    with pytest.raises(NeedMissing, match=r"fairway\[cassandra\]"):
        fairway.open("cassandra://h/k")


@pytest.mark.parametrize(
    ("hosts", "seen", "settings", "copies"),
    [
        ("h1", {"a": 1}, "", "'a': 1"),
        ("h1", {"a": 5}, "", "'a': 3"),
        ("h1,h2,h3", {"a": 2}, "", "'a': 3"),  # the third has not been seen yet, and the number stays
        ("h1:1,h1:2", {"a": 1}, "", "'a': 1"),
        ("h1,h2,h3", {"a": 2}, "replication=1", "'a': 1"),
        ("localhost,127.0.0.1", {"a": 1}, "", "'a': 1"),
        ("h1,h2,h3", {"a": 3, "b": 2}, "", "'a': 3, 'b': 2"),
        ("h1,h2,h3", {"a": 3, "b": 2}, "dc=b", "'b': 3"),
    ],
)
def test_a_new_keyspace_has_copies_for_every_node_that_is_seen_or_named(
    hosts: str, seen: dict[str, int], settings: str, copies: str
) -> None:
    nodes = [SimpleNamespace(datacenter=name) for name, many in seen.items() for _ in range(many)]
    cluster = SimpleNamespace(metadata=SimpleNamespace(all_hosts=lambda: nodes))
    address = Address.parse(f"cassandra://{hosts}/k?{settings}")
    assert _copies(SimpleNamespace(address=address, cluster=cluster)) == copies  # type: ignore[arg-type]
