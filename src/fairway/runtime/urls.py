"""Where a queue is, by its URL.

Guards: saying which it is opens nothing and loads next to nothing: tasks of Spark ask too.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from fairway.face import checks

Place = str | os.PathLike[str]


def on_cassandra(url: object) -> bool:
    return isinstance(url, str) and url.startswith("cassandra://")


def path_of(url: object) -> str | None:
    """The path in a URL; None for memory."""
    if not isinstance(url, str | os.PathLike):
        checks.refuse("url", 'a path, a URL or ":memory:"', url)
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "\x00" in text:
        checks.refuse("url", 'a path, a URL or ":memory:"', url)
    if text == ":memory:":
        return None
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            checks.refuse("url", "file: with a path and nothing else", url)
        return unquote(parts.path)
    if "://" in text:
        checks.refuse("url", 'a path, a file:, http:, https: or cassandra: URL, or ":memory:"', url)
    return text
