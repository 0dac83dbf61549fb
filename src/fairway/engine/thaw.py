"""Thawing: a run that ended, made readable again from what the store kept of it."""

from __future__ import annotations

import msgspec

from fairway.engine.lookups import Found
from fairway.engine.progress import decode_end, restore
from fairway.engine.run import Run
from fairway.engine.sheets import page_of, put_pages
from fairway.engine.tenant import Tenant
from fairway.limits import PAGE_CHUNKS
from fairway.model.stored import StoredRun
from fairway.model.submission import Described

decode_described = msgspec.msgpack.Decoder(Described).decode


def thaw(stored: StoredRun, seed: int, owner: Tenant | None = None) -> Run:
    """The run as it ended; pages of a run with several are put in by `pages_into`."""
    described = decode_described(stored.body)
    run = Run.new(stored.id, stored.pass_, described, owner or Tenant(described.tenant), seed)
    body = decode_end(stored.end)
    run.state = stored.state  # pyright: ignore[reportAttributeAccessIssue]
    run.ended = body.at
    restore(run, body.progress)
    if run.total > PAGE_CHUNKS:
        run.own_done().count = body.done
    return run


def pages_into(run: Run, found: Found) -> None:
    """Put pages that were looked up into a thawed run; its count says how many are done in all."""
    count = run.done.count
    here = run.done.pages
    put_pages(
        run,
        [
            (part, body)
            for (id, part), body in found.pages.items()
            if id == run.id and page_of(part) not in here
        ],
    )
    run.own_done().count = count
