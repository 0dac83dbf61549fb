"""Errors of the driver: "not stored" is said only when it is certain."""

from __future__ import annotations

import pytest
from cassandra import (
    AuthenticationFailed,
    InvalidRequest,
    OperationTimedOut,
    Unavailable,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException, ConnectionShutdown
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage

from fairway.errors import BadArgument, GroupUnknown, StoreFailed
from fairway.store.cassandra.translate import translate, translate_conditional

UNSAID = ErrorMessage(
    0x1700, "CAS operation result is unknown - proposal accepted by 1 but not a quorum.", None
)


def _nobody(*errors: Exception) -> NoHostAvailable:
    return NoHostAvailable("nobody", {f"host{n}": error for n, error in enumerate(errors)})


@pytest.mark.parametrize(
    "error",
    [
        WriteTimeout("timeout", write_type=WriteType.CAS),
        OperationTimedOut(), Unavailable("too few"), ConnectionShutdown("gone"), UNSAID,
        RuntimeError("?"), _nobody(ConnectionShutdown("heartbeat")),
        _nobody(NoConnectionsAvailable(), OperationTimedOut()),
    ],
    ids=repr,
)  # fmt: skip
def test_what_may_have_been_sent_is_unknown(error: Exception) -> None:
    assert type(translate_conditional(error)) is GroupUnknown
    assert type(translate(error)) is StoreFailed


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("no"),
        _nobody(),
        _nobody(NoConnectionsAvailable(), ConnectionException("Pool is shutdown")),
    ],
    ids=repr,
)
def test_what_was_never_sent_had_no_effect(error: Exception) -> None:
    assert type(translate_conditional(error)) is StoreFailed


def test_a_wrong_password_is_said_so() -> None:
    assert type(translate(_nobody(AuthenticationFailed("bad")))) is BadArgument
