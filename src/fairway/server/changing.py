"""REST that steers: queues, cancel, redrive, pauses, weights; and clients, whose calls have numbers."""

from __future__ import annotations

from fairway.engine.commands import Register
from fairway.errors import BadArgument, WrongKind
from fairway.model.config import QueueConfig
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.doing import submission_id
from fairway.server.looking import queue_view
from fairway.server.strategies import text_of


async def about_bucket(ask: Ask) -> bool:
    """Whether a queue that is to be made or deleted is a bucket queue, there already or as asked for."""
    queues, name = ask.app.queues, ask.params["queue"]
    wanted = getattr(ask.body, "kind", None)
    fair = name in await queues.names()
    if not fair:
        fair = wanted != "bucket" and name not in await queues.bucket_names()
    if wanted is not None and (wanted == "fair") is not fair:
        raise WrongKind(f"{name!r} is a {'fair' if fair else 'bucket'} queue; take another name", allow=[])
    if not fair and wanted is None:
        ask.queue = await queues.bucket(name, create=False)
    return not fair


async def make(ask: Ask) -> Answer:
    """Make a queue if there is none, and set what is given."""
    name = ask.params["queue"]
    changes = v.words(ask.body) if ask.body is not None else {}
    changes.pop("kind", None)
    for setting in changes:
        if setting not in QueueConfig.__struct_fields__:
            raise BadArgument(f"{setting}: a fair queue does not have it; leave it out", argument=setting)
    if "strategy" in changes:
        changes["strategy"] = text_of(changes["strategy"])  # a bad one is refused before a queue is made
    made = await ask.app.queues.make(name)
    ask.queue = await ask.app.queues.get(name)
    if changes:
        await ask.queue.queue.configure(**changes)
    return Answer(await queue_view(ask), 201 if made else 200)


async def delete(ask: Ask) -> Answer:
    """Delete a queue with all that is in it."""
    await ask.app.queues.drop(ask.params["queue"])
    return Answer(status=204)


async def cancel(ask: Ask) -> Answer:
    """End a submission now."""
    return Answer(v.submission_view(await ask.q.cancel(submission_id(ask))))


async def redrive(ask: Ask) -> Answer:
    """Open the dead and skipped chunks of a submission again."""
    return Answer(v.submission_view(await ask.q.redrive(submission_id(ask))))


async def pause(ask: Ask) -> Answer:
    """Hand out nothing more of a submission."""
    id = submission_id(ask)
    await ask.q.pause(submission=id)
    return Answer(v.submission_view(await ask.q.submission(id)))


async def resume(ask: Ask) -> Answer:
    """Take the pause of a submission back."""
    id = submission_id(ask)
    await ask.q.resume(submission=id)
    return Answer(v.submission_view(await ask.q.submission(id)))


async def pause_queue(ask: Ask) -> Answer:
    """Hand out nothing more of the queue."""
    await ask.q.pause()
    return Answer(await queue_view(ask))


async def resume_queue(ask: Ask) -> Answer:
    """Take the pause of the queue back."""
    await ask.q.resume()
    return Answer(await queue_view(ask))


async def tenant(ask: Ask) -> Answer:
    """Set a tenant's weight, its pause, or both."""
    body: v.TenantChange = ask.body
    if ask.number is not None and body.weight is not None and body.paused is not None:
        raise BadArgument("with a number, give weight or paused, not both", argument="paused")
    if body.weight is not None:
        await ask.q.set_weight(body.tenant, body.weight)
    if body.paused is not None:
        await (ask.q.pause if body.paused else ask.q.resume)(tenant=body.tenant)
    return Answer(status=204)


async def register(ask: Ask) -> Answer:
    """Register a client: calls with its name and a number have one effect, however often they are sent."""
    assert ask.queue is not None
    id = await ask.queue.port.ask(Register())
    return Answer(v.ClientView(ask.app.seals.name(ask.queue.name, ask.token.id, id)), 201)
