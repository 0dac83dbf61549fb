"""`fairway tenants` and `fairway consumers`: who shares the queue."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairway.cli import saying
from fairway.cli.places import HERE, MINE, Flag, MayHost, Place, Where, changing, reading
from fairway.engine.commands import TenantView
from fairway.errors import BadArgument, NotFound


def tenants(
    place: Place,
    tenant: str | None = None,
    /,
    *,
    weight: Annotated[float | None, Parameter(help="Set the share of the tenant, 0.01 to 100.")] = None,
    pause: Annotated[Flag, Parameter(help="Hand out nothing more of the tenant.")] = False,
    resume: Annotated[Flag, Parameter(help="Take that back.")] = False,
    where: MayHost = MINE,
) -> int:
    """List the tenants of a queue; or set one's weight, pause or resume it.

    Parameters
    ----------
    tenant
        The tenant to change, or to show alone.
    """
    if weight is None and not pause and not resume:
        with reading(place, where) as queue:
            found = [view for view in queue.tenants() if tenant is None or view.name == tenant]
        if tenant is not None and not found:
            raise NotFound(
                f"there is no tenant {tenant!r} here: none with work, a weight or a pause of its own"
            )
        _show(found, where.json)
        return 0
    if tenant is None:
        raise BadArgument("say which tenant: fairway tenants PLACE TENANT --weight 5")
    if pause and resume:
        raise BadArgument("give --pause or --resume, not both")
    with changing(place, where) as queue:
        if weight is not None:
            queue.set_weight(tenant, weight)
        if pause or resume:
            (queue.pause if pause else queue.resume)(tenant=tenant)
        found = [view for view in queue.tenants() if view.name == tenant]
    _show(found or [TenantView(tenant, 1.0, False, 0, 0, 0)], where.json)
    return 0


def _show(found: list[TenantView], json: bool) -> None:
    if json:
        for view in found:
            saying.say_json(view)
        return
    rows = [
        (
            saying.tenant(view.name),
            f"{view.weight:g}",
            saying.state("active", view.paused) if view.paused else saying.state("active"),
            saying.number(view.submissions),
            saying.number(view.waiting),
            saying.number(view.leased),
            saying.ago(view.oldest),
        )
        for view in found
    ]
    numbers = ("weight", "submissions", "waiting", "leased", "oldest")
    saying.table(("tenant", "weight", "state", *numbers[1:]), rows, numbers)


def consumers(place: Place, /, *, where: Where = HERE) -> int:
    """List the named consumers, and their reservations that are not yet trimmed."""
    with reading(place, where) as queue:
        found = queue.consumers()
    if where.json:
        for view in found:
            saying.say_json(view)
        return 0
    rows = [
        (view.name, view.epoch, len(view.seqs), _ranges(view.seqs), saying.ago(view.seen) + " ago")
        for view in found
    ]
    saying.table(("consumer", "epoch", "open", "seqs", "seen"), rows, ("epoch", "open", "seen"))
    return 0


def _ranges(seqs: list[int]) -> str:
    """7-9, 12"""
    parts: list[list[int]] = []
    for seq in seqs:
        if parts and seq == parts[-1][1] + 1:
            parts[-1][1] = seq
        else:
            parts.append([seq, seq])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
