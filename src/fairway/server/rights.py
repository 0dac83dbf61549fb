"""Rights: the short list of what a token may allow, and who needs which.

Guards: every command that a client can send has a right, or is refused.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal

from fairway.engine import commands as c
from fairway.face import reads as r
from fairway.limits import KEPT_NAMES_MAX

Right = Literal["submit", "work", "read", "operate"]
RIGHTS: Final[dict[str, str]] = {
    "submit": "bring work: submissions and messages",
    "work": "reserve chunks and complete, fail, renew or release them",
    "read": "look: submissions, results, tenants, counts, events, metrics",
    "operate": "steer: make, configure and delete queues, cancel, redrive, pause, weights",
}

# Any right is enough to be registered as a client: its numbers do nothing by themselves.
NEEDED: Final[dict[type[Any], Right | None]] = {
    c.Register: None,
    c.Goodbye: None,
    c.Submit: "submit",
    c.Reserve: "work",
    c.Complete: "work",
    c.Fail: "work",
    c.Renew: "work",
    c.Release: "work",
    c.Join: "work",
    c.Trim: "work",
    c.Finish: "work",
    c.Cancel: "operate",
    c.Redrive: "operate",
    c.Pause: "operate",
    c.SetWeight: "operate",
    c.Configure: "operate",
    c.Show: "read",
    c.Wait: "read",
    c.ListActive: "read",
    c.ListDead: "read",
    c.Stats: "read",
    c.Tenants: "read",
    c.Consumers: "read",
    c.Explain: "read",
    c.Winners: "read",
    c.ShowConfig: "read",
    r.ReadPages: "work",
    r.Describe: "read",
    r.ListEnded: "read",
    r.ListEndedDead: "read",
    r.ReadResults: "read",
    r.ReadEvents: "read",
}
# What the wire could carry and no client may send, with the reason.
REFUSED: Final[dict[type[Any], str]] = {
    c.Purge: "retention is the server's own: its sweeper purges",
}


@lru_cache(KEPT_NAMES_MAX)
def matches(queue: str, patterns: tuple[str, ...]) -> bool:
    """Whether a queue's name matches one of the patterns; `*` stands for anything, `?` for one character."""
    # A bracket means itself: names have none, and a pattern must not mean more than it shows.
    return any(fnmatchcase(queue, pattern.replace("[", "[[]")) for pattern in patterns)
