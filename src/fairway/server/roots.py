"""Roots: the object stores and folders that submissions of a server may name.

Guards: no prefix that passes can mean anything outside its root, however it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlsplit

from fairway.errors import BadArgument, Forbidden
from fairway.face import checks

_ODD = re.compile(r"[\x00-\x20\\%?#\x7f]")  # what somebody else may read in another way


class Roots:
    """The configured roots; with none, payloads can only be inline."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = tuple(_root(root) for root in roots)

    def check(self, prefixes: Iterable[str]) -> None:
        """Refuse a prefix that does not lie inside a root."""
        for prefix in prefixes:
            if not self._roots:
                raise Forbidden("this server takes inline payloads only; its `objects` setting names no root")
            if not any(_inside(prefix, root) for root in self._roots):
                raise Forbidden(
                    "objects: the prefix lies outside of the roots that this server is configured with",
                    argument="objects",
                )


def _root(text: str) -> str:
    root = checks.prefix("objects", text)
    if not _plain(root):
        raise BadArgument(f"objects: a root is a plain URL without '..', '%', '?' or '#', not {text!r}")
    return root


def _plain(url: str) -> bool:
    if _ODD.search(url):
        return False
    try:
        parts = urlsplit(url)
        path = unquote(parts.path)
    except ValueError:
        return False
    steps: Sequence[str] = path.split("/")[1:]
    return "@" not in parts.netloc and all(step not in ("", ".", "..") for step in steps if path.strip("/"))


def _inside(prefix: str, root: str) -> bool:
    return _plain(prefix) and (prefix == root or prefix.startswith(root + "/"))
