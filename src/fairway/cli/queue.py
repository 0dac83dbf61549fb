"""`fairway queue`: make queues, list and delete them, show and change what they are set to, pause and resume."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from cyclopts import Parameter

import fairway
from fairway.bucket.counting import BucketStats
from fairway.cli import saying
from fairway.cli.knocking import knock
from fairway.cli.places import HERE, MINE, Flag, MayHost, Place, Where, changing, file_of, is_url, reading
from fairway.cli.words import Seconds
from fairway.client.address import Address, is_http
from fairway.client.blocking import HttpPort
from fairway.client.rest import Call, RestCore
from fairway.engine.commands import QueueStats
from fairway.errors import BadArgument
from fairway.face.queue import Queue
from fairway.model.config import QueueConfig
from fairway.store.sqlite.looking import queue_names
from fairway.store.sqlite.queues import bucket_names


@Parameter(name="*")
@dataclass(frozen=True)
class Settings:
    """What a queue can be set to; what is left out stays as it is."""

    attempts_max: Annotated[int | None, Parameter(help="Deliveries of a chunk before it is dead.")] = None
    lease_seconds: Annotated[Seconds | None, Parameter(help="How long a lease lasts.")] = None
    retention_seconds: Annotated[Seconds | None, Parameter(help="How long what ended stays readable.")] = None
    event_seconds: Annotated[Seconds | None, Parameter(help="How long the event log is kept.")] = None
    retry_delay_seconds: Annotated[Seconds | None, Parameter(help="The first back-off; it doubles.")] = None
    retry_delay_seconds_max: Annotated[Seconds | None, Parameter(help="Where the doubling stops.")] = None
    consumer_silent_seconds: Annotated[
        Seconds | None, Parameter(help="Then the named reservations of a consumer lapse.")
    ] = None
    client_silent_seconds: Annotated[Seconds | None, Parameter(help="Then a client is forgotten.")] = None
    strategy: Annotated[str | None, Parameter(help="How to choose where a reserve does not say.")] = None
    strategy_locked: Annotated[
        bool | None,
        Parameter(negative="--strategy-free", help="Refuse a reserve that names another; or allow it."),
    ] = None

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


ASIS = Settings()
Listed = tuple[str, QueueStats | BucketStats]


class _Found(msgspec.Struct):
    """What a server tells of a queue, as far as it is listed."""

    stats: dict[str, Any]
    kind: str = "fair"


def create(
    place: Place, /, *, if_missing: Flag = False, settings: Settings = ASIS, where: Where = HERE
) -> int:
    """Make a queue, and its file if there is none.

    Parameters
    ----------
    if_missing
        Say nothing if it is there already.
    """
    if is_url(place):
        knock(place, where.queue)
        queue = fairway.open(place, where.queue)
    else:
        path = file_of(place)
        there = os.path.exists(path) and os.path.getsize(path) > 0 and where.queue in queue_names(path)
        if there and not if_missing:
            raise BadArgument(
                f"{place} has a queue {where.queue!r} already; change it with `fairway queue configure`,"
                " or add --if-missing"
            )
        queue = fairway.open(path, where.queue)
    with queue:
        config = queue.configure(**settings.given())
    if where.json:
        saying.say_json({"queue": where.queue, "place": place, "config": config})
    else:
        saying.say(f"queue {where.queue!r} is in {place}")
    return 0


def list_(place: Place, /, *, where: Where = HERE) -> int:
    """List the queues of a file or a server."""
    shown = _on_server(place) if is_http(place) else _in_file(place)
    if where.json:
        for name, stats in shown:
            bucket = {"queue": name, "kind": "bucket", **msgspec.to_builtins(stats)}
            saying.say_json(stats if isinstance(stats, QueueStats) else bucket)
        return 0
    numbers = ("tenants", "submissions", "waiting", "leased", "dead")
    saying.table(("queue", "state", *numbers), [_row(name, stats) for name, stats in shown], numbers)
    return 0


def _row(name: str, stats: QueueStats | BucketStats) -> tuple[object, ...]:
    if isinstance(stats, BucketStats):
        waiting = stats.ready + stats.delayed
        counts_ = [saying.number(one) for one in (waiting, stats.leased, stats.dead)]
        return (name, "bucket", "", "", *counts_)
    counted = (
        stats.tenants,
        stats.submissions_active,
        stats.chunks_waiting,
        stats.chunks_leased,
        stats.chunks_dead,
    )
    return (name, saying.state("active", stats.paused), *(saying.number(one) for one in counted))


def _in_file(place: str) -> list[Listed]:
    path = file_of(place)
    if not os.path.exists(path):
        raise fairway.NotFound(f"there is no file {place}; make it with: fairway queue create {place}")
    shown: list[Listed] = []
    for name in queue_names(path):
        with reading(path, Where(queue=name)) as queue:
            shown.append((name, queue.stats()))
    for name in bucket_names(path):
        with fairway.open(path, name, kind="bucket", create=False) as bucket:
            shown.append((name, bucket.stats()))
    return shown


def _on_server(place: str) -> list[Listed]:
    knock(place, HERE.queue)
    port = HttpPort(Address.of(place, HERE.queue, None), RestCore)
    try:
        shown: list[Listed] = []
        for name in port.ask(Call("GET", "/v1/queues", gives=dict[str, list[str]]))["queues"]:
            path = f"/v1/queues/{quote(name, safe='')}"
            found = port.ask(Call("GET", path, gives=_Found))
            kind = BucketStats if found.kind == "bucket" else QueueStats
            shown.append((name, msgspec.convert(found.stats, kind)))
        return shown
    finally:
        port.close()


def delete(place: Place, /, *, yes: Flag = False, where: Where = HERE) -> int:
    """Delete a queue with all that is in it, for good.

    Parameters
    ----------
    yes
        That you mean it.
    """
    if not yes:
        raise BadArgument(
            f"this deletes queue {where.queue!r} of {place} with all that is in it, for good; repeat it with --yes"
        )
    knock(place, where.queue)
    fairway.delete(place, where.queue)
    if where.json:
        saying.say_json({"queue": where.queue, "deleted": True})
    else:
        saying.say(f"queue {where.queue!r} of {place} is deleted")
    return 0


def show(place: Place, /, *, where: Where = HERE) -> int:
    """Show what a queue is set to, and its counts."""
    with reading(place, where) as queue:
        config, stats = queue.configure(), queue.stats()
    if where.json:
        saying.say_json({"queue": where.queue, "config": config, "stats": stats})
    else:
        saying.fields([("queue", where.queue), *counts(stats), ("", ""), *_told(config)])
    return 0


def configure(place: Place, /, *, settings: Settings = ASIS, where: MayHost = MINE) -> int:
    """Change what a queue is set to."""
    given = settings.given()
    if not given:
        raise BadArgument("nothing to change; give a setting, or look with `fairway queue show`")
    with changing(place, where) as queue:
        config = queue.configure(**given)
    if where.json:
        saying.say_json(config)
    else:
        saying.fields(_told(config))
    return 0


def pause(
    place: Place,
    /,
    *,
    tenant: str | None = None,
    submission: int | None = None,
    where: MayHost = MINE,
) -> int:
    """Hand out nothing more of the queue, of a tenant or of a submission; leases that are out go on.

    Parameters
    ----------
    tenant
        Pause this tenant only.
    submission
        Pause this submission only.
    """
    return _flag(place, where, True, tenant, submission)


def resume(
    place: Place,
    /,
    *,
    tenant: str | None = None,
    submission: int | None = None,
    where: MayHost = MINE,
) -> int:
    """Take a pause back. The pauses of a queue, a tenant and a submission are independent.

    Parameters
    ----------
    tenant
        Resume this tenant only.
    submission
        Resume this submission only.
    """
    return _flag(place, where, False, tenant, submission)


def _flag(place: str, where: MayHost, on: bool, tenant: str | None, submission: int | None) -> int:
    with changing(place, where) as queue:
        set_flag(queue, on, tenant, submission)
    what = (
        f"submission {submission}"
        if submission is not None
        else f"tenant {tenant!r}"
        if tenant is not None
        else f"queue {where.queue!r}"
    )
    if where.json:
        saying.say_json({"paused": on, "tenant": tenant, "submission": submission})
    else:
        saying.say(f"{what} is {'paused' if on else 'no longer paused'}")
    return 0


def set_flag(queue: Queue, on: bool, tenant: str | None, submission: int | None) -> None:
    (queue.pause if on else queue.resume)(tenant=tenant, submission=submission)


def counts(stats: QueueStats) -> list[tuple[str, object]]:
    """The counts of a queue, for people."""
    return [
        ("state", saying.state("active", stats.paused)),
        ("submissions", f"{stats.submissions_active:,} active"),
        (
            "chunks",
            f"{stats.chunks_waiting:,} waiting, {stats.chunks_leased:,} leased, {stats.chunks_done:,} done,"
            f" {stats.chunks_dead:,} dead",
        ),
        ("tenants", saying.number(stats.tenants)),
        ("waiting workers", saying.number(stats.waiters)),
    ]


def _told(config: QueueConfig) -> list[tuple[str, object]]:
    return [
        (name.removesuffix("_seconds").replace("_seconds_", "_").replace("_", " "), _value(name, value))
        for name in config.__struct_fields__
        for value in [getattr(config, name)]
    ]


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return saying.span(value) if "seconds" in name else str(value)
