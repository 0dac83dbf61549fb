"""A real node that wants TLS and a password: both are given by URL, by environment and by argument, or it refuses."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fairway
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.java import find_java
from fairway.testing.cassandra.sharing import needed

if TYPE_CHECKING:
    from fairway.store.cassandra import Connection

# A node of its own costs about 25 s of CPU, so this is for `make proof`.
pytestmark = [pytest.mark.real, pytest.mark.proof, pytest.mark.timeout(600)]
SECRET = "not-cassandra:p@ss/w"  # what must be escaped in a URL is in it
ESCAPED = SECRET.replace(":", "%3A").replace("@", "%40").replace("/", "%2F")
START_SECONDS = 120.0

SETTINGS = """
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
client_encryption_options:
  enabled: true
  optional: false
  keystore: {folder}/node.p12
  keystore_password: changeit
  store_type: PKCS12
"""


@dataclass(frozen=True)
class Secure:
    """Where the node is, and the file of the authority that it is known by."""

    at: str
    ca: Path
    stranger: Path  # an authority that knows nothing of it


def certificate(folder: Path, name: str) -> Path:
    """A key in a store, and its certificate beside it."""
    keytool = str(find_java().with_name("keytool"))
    store, pem = folder / f"{name}.p12", folder / f"{name}.pem"
    common = ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit", "-alias", "it"]
    make = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=fairway test", "-ext", "bc:c", "-validity", "30"]
    subprocess.run([keytool, *make, *common], check=True, capture_output=True)
    subprocess.run(
        [keytool, "-exportcert", "-rfc", "-file", str(pem), *common], check=True, capture_output=True
    )
    return pem


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secure")
    with needed():
        cluster = Cluster(
            folder,
            1,
            settings=SETTINGS.format(folder=folder),
            properties=("-Dcassandra.superuser_setup_delay_ms=0",),
        )
        ca, stranger = certificate(folder, "node"), certificate(folder, "stranger")
    with cluster:
        at = f"{cluster.hosts[0]}:{cluster.port}"
        change_password(at, ca)
        yield Secure(at, ca, stranger)
    shutil.rmtree(folder, ignore_errors=True)


def change_password(at: str, ca: Path) -> None:
    """The first user is made a moment after the node answers, and the node may remember its password for seconds."""
    connection = opened(f"cassandra://cassandra:cassandra@{at}/k?ca={ca}")
    try:
        connection.session.execute(f"ALTER ROLE cassandra WITH PASSWORD = '{SECRET}'")
    finally:
        connection.close()
    opened(f"cassandra://cassandra:{ESCAPED}@{at}/k?ca={ca}").close()


def opened(url: str) -> Connection:
    """Connect, when the node lets us in."""
    from fairway.store.cassandra import Address, Connection

    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return Connection.open(Address.parse(url, {}, {}))
        except fairway.FairwayError:
            assert time.monotonic() < until
            time.sleep(0.5)


def works(url: str, **options: object) -> None:
    with fairway.open(url, options=options or None) as q:
        id = q.put(b"hello").id
        (lease,) = q.reserve()
        assert lease.submission == id and q.complete(lease) == "done"


def test_tls_and_password_by_url_environment_and_argument(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    works(f"cassandra://cassandra:{ESCAPED}@{secure.at}/by_url?ca={secure.ca}")
    works(f"cassandra://{secure.at}/by_url", user="cassandra", password=SECRET, tls=True, ca=str(secure.ca))
    for name, value in (("USER", "cassandra"), ("PASSWORD", SECRET), ("CA", str(secure.ca))):
        monkeypatch.setenv(f"FAIRWAY_CASSANDRA_{name}", value)
    works(f"cassandra://{secure.at}/by_url")
    with fairway.open(f"cassandra://{secure.at}/by_url", "events", kind="bucket") as q:
        assert q.put(b"bucket queues too")
        assert len(q.reserve(wait_seconds=20)) == 1


def test_a_wrong_password_is_refused_and_never_shown(secure: Secure) -> None:
    with pytest.raises(fairway.BadArgument, match="refuses this user and password") as raised:
        fairway.open(f"cassandra://cassandra:cassandra-wrong@{secure.at}/by_url?ca={secure.ca}")
    assert "cassandra-wrong" not in str(raised.value)


def test_a_node_of_an_unknown_authority_gets_no_password(secure: Secure) -> None:
    for how in (f"ca={secure.stranger}", "tls=1", "tls=0"):
        with pytest.raises(fairway.StoreFailed) as raised:
            fairway.open(
                f"cassandra://{secure.at}/by_url?{how}", options={"user": "cassandra", "password": SECRET}
            )
        assert SECRET not in str(raised.value)
