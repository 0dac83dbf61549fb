"""Rendering: templates into pages and fragments, and the files that go with them.

Guards: every value is escaped; a page runs no script and no style but the files named here; a file is found by its
name in a table made at the start, never by a path.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairway.server.web import wording

_HERE: Final = Path(__file__).parent
_MEDIA: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HTML: Final = "text/html; charset=utf-8"
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    b" form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """The files of the pages by name: what is in them, and what they are."""
    found: dict[str, tuple[bytes, str]] = {}
    for folder in ("static", "vendor"):
        for path in sorted((_HERE / folder).iterdir()):
            if path.suffix in _MEDIA:
                found[path.name] = (path.read_bytes(), _MEDIA[path.suffix])
    return found


@cache
def version() -> str:
    """A name for the files as they are, so that browsers may keep them until they change."""
    digest = hashlib.sha256()
    for name, (body, _) in files().items():
        digest.update(name.encode() + b"\0" + body)
    return digest.hexdigest()[:12]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(wording.FILTERS)
    made.globals.update(progress=wording.progress, asset=lambda name: f"/ui/files/{version()}/{name}")
    return made


@cache
def parts() -> frozenset[str]:
    """The templates of parts of pages, which change while a page is shown."""
    return frozenset(path.name for path in (_HERE / "templates").glob("_*.html"))


def render(template: str, values: dict[str, Any]) -> bytes:
    """A template filled in; a name that it needs and does not get is an error."""
    return _environment().get_template(template).render(values).encode(errors="replace")
