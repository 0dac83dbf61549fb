"""The driver's errors as errors of Fairway.

Guards: "not stored" is only said when it is certain: the request was never sent, or the server did not understand it.
"""

from __future__ import annotations

from cassandra import AuthenticationFailed, DriverException, InvalidRequest, OperationTimedOut, Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import ErrorMessage, SyntaxException

from fairway.errors import BadArgument, FairwayError, GroupUnknown, StoreFailed

_REFUSED = (InvalidRequest, SyntaxException, Unauthorized)
_MAYBE_SENT = (ConnectionShutdown, DriverException, ErrorMessage, OperationTimedOut, OSError)


def translate(error: Exception) -> FairwayError:
    """The error of a read, or of a write that may be repeated."""
    if isinstance(error, FairwayError):
        return error
    if isinstance(error, NoHostAvailable):
        found = error.errors.values() if isinstance(error.errors, dict) else ()
        if any(isinstance(one, AuthenticationFailed) for one in found):
            return BadArgument("url: the cluster refuses this user and password", argument="url")
        return StoreFailed(
            f"no node of the cluster answers ({error.args[0] if error.args else error}); the call had no effect. "
            "Check the addresses and the network, then repeat it"
        )
    if isinstance(error, Unauthorized):
        return BadArgument(f"url: this user may not do that: {error}", argument="url")
    return StoreFailed(
        f"Cassandra: {type(error).__name__}: {error}; the call had no effect and may be repeated"
    )


def translate_conditional(error: Exception) -> FairwayError:
    """The error of a conditional write: whatever may have reached a coordinator is unknown."""
    if isinstance(error, FairwayError):
        return error
    if isinstance(error, _REFUSED) or _never_sent(error):
        return translate(error)
    return GroupUnknown(f"Cassandra: {type(error).__name__}: {error}; it is settled by reading")


def _never_sent(error: Exception) -> bool:
    """Whether no node was asked: none was known to be up. A connection that broke may have carried the request."""
    if not isinstance(error, NoHostAvailable) or not isinstance(error.errors, dict):
        return False
    return not any(isinstance(one, _MAYBE_SENT) for one in error.errors.values())
