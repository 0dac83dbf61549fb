"""The words of a history: engine commands and replies as the plain values that stand in its lines.

Guards: one call has one form in a history, whoever wrote it.

| op | args | ok |
|---|---|---|
| submit | offers: list of {tenant, total, payloads?, metadata, info, priority, policy, key, fingerprint, delay_seconds, deadline_seconds, attempts_max, weight} | {ids, known} |
| reserve | max, strategy, lease_seconds, wait_seconds, consumer, consumer_epoch, seq | {epoch, count, deadline, spans: [[sub, start, count, attempt]], runs, payloads: [[sub, index, text]]} |
| complete, fail, renew, release | parts: [[epoch, count, [[sub, start, count]]]]; results, error, retry, delay_seconds, seconds; forged | {outcomes: [[outcome, count]], deadline} |
| cancel, redrive, show, wait | sub; seconds | the submission |
| pause | on, tenant, sub | null |
| set_weight | tenant, weight in thousandths | null |
| configure | the changes | the configuration |
| join, trim | consumer, consumer_epoch, seq, complete | the epoch; null |
| finish | consumer, consumer_epoch or run, whole; parts, results of what is completed; failed: parts; error, retry, delay_seconds | {outcomes, failed: outcomes, rest, before} |
| list_dead, consumers, explain, show_config | | the dead chunks; the consumers; text; the configuration |
| results, winners | sub | [[index, text]]; [[start, count, epoch, reservation]] |
| events | | [[what, sub, start, count, epoch, reservation, attempt, tenant]], the whole log |
| census | | {stats, active, tenants}, all of one instant |
"""  # noqa: E501

from __future__ import annotations

from typing import Any

import msgspec

from fairway.engine import commands as c
from fairway.model.event import Event
from fairway.model.ids import seconds_of
from fairway.model.submission import DeadChunk, Described, Offer, Submission
from fairway.testing.history import text_of

_OPS: dict[type, str] = {
    c.Register: "register",
    c.Submit: "submit",
    c.Reserve: "reserve",
    c.Complete: "complete",
    c.Fail: "fail",
    c.Renew: "renew",
    c.Release: "release",
    c.Cancel: "cancel",
    c.Redrive: "redrive",
    c.Pause: "pause",
    c.SetWeight: "set_weight",
    c.Configure: "configure",
    c.Join: "join",
    c.Trim: "trim",
    c.Finish: "finish",
    c.Goodbye: "goodbye",
    c.Show: "show",
    c.Wait: "wait",
    c.ListActive: "list_active",
    c.Winners: "winners",
    c.ListDead: "list_dead",
    c.Consumers: "consumers",
    c.Explain: "explain",
    c.ShowConfig: "show_config",
    c.Stats: "stats",
}


def op_of(command: c.Command) -> str:
    """The name of an operation."""
    return _OPS[type(command)]


def args_of(command: c.Command) -> dict[str, Any]:
    """A command's arguments as they stand in a history."""
    match command:
        case c.Submit():
            return {"offers": [offer_of(offer) for offer in command.offers]}
        case c.Complete() | c.Fail() | c.Renew() | c.Release():
            return {"parts": [[p.epoch, p.count, p.spans] for p in command.parts], **_details(command)}
        case c.Finish():
            return _batch(command)
        case c.Cancel(id=id) | c.Redrive(id=id) | c.Show(id=id) | c.Winners(id=id):
            return {"sub": id}
        case c.Wait(id=id, seconds=seconds):
            return {"sub": id, "seconds": seconds}
        case c.Pause(on=on, tenant=tenant, submission=submission):
            return {"on": on, "tenant": tenant, "sub": submission}
        case c.Configure(changes=changes):
            return dict(changes)
        case c.Register() | c.Goodbye() | c.ListActive():
            return {}
        case _:
            return msgspec.structs.asdict(command)


def _details(command: c.Complete | c.Fail | c.Renew | c.Release) -> dict[str, Any]:
    match command:
        case c.Complete(results=results):
            return {} if results is None else {"results": [text_of(one) for one in results]}
        case c.Fail():
            return {"error": command.error, "retry": command.retry, "delay_seconds": command.delay_seconds}
        case c.Renew(seconds=seconds):
            return {"seconds": seconds}
        case _:
            return {}


def _batch(command: c.Finish) -> dict[str, Any]:
    """What a batch names: what it completes and fails, each as one call; the results of the rest are left out."""
    done = [part for one in command.completed for part in one.parts]
    failed = [part for one in command.failed for part in one.parts]
    spoken: dict[str, Any] = {
        "consumer": command.consumer,
        "consumer_epoch": command.consumer_epoch,
        "run": command.run,
        "whole": command.whole,
        "parts": [[p.epoch, p.count, p.spans] for p in done],
        "failed": [[p.epoch, p.count, p.spans] for p in failed],
    }
    for one in command.completed[:1]:
        spoken |= _details(one)
    for one in command.failed[:1]:
        spoken |= _details(one)
    return spoken


def offer_of(offer: Offer) -> dict[str, Any]:
    """An offer without its payloads: they are added by whoever made them."""
    described = offer.described
    given: dict[str, Any] = {
        "tenant": described.tenant,
        "total": described.total,
        "metadata": described.metadata,
        "info": text_of(described.info),
        "priority": described.priority,
        "policy": described.policy,
        "key": described.key,
        "fingerprint": text_of(offer.described.fingerprint),
        "not_before": described.not_before,
        "delay_seconds": offer.delay_seconds,
        "deadline_seconds": offer.deadline_seconds,
        "attempts_max": described.attempts_max,
        "weight": offer.weight,
    }
    kept = ("tenant", "total", "policy")
    return {name: value for name, value in given.items() if value or name in kept}


def run_of(id: int, described: Described) -> dict[str, Any]:
    """What a reservation says of a submission."""
    return {
        "id": id,
        "tenant": described.tenant,
        "total": described.total,
        "created": seconds_of(id),
        "not_before": described.not_before,
        "deadline": described.deadline,
        "attempts_max": described.attempts_max,
        "metadata": described.metadata,
        "info": text_of(described.info),
        "priority": described.priority,
        "policy": described.policy,
        "key": described.key,
    }


def submission_of(shown: Submission) -> dict[str, Any]:
    """A submission as it was shown."""
    plain = msgspec.structs.asdict(shown)
    plain["info"] = text_of(shown.info)
    return plain


def reply_of(reply: Any) -> Any:
    """A reply as it stands in a history; what a reservation's payloads were is added by whoever read them."""
    match reply:
        case c.Accepted():
            return {"ids": reply.ids, "known": reply.known}
        case c.Reserved():
            return {
                "epoch": reply.epoch,
                "count": reply.count,
                "deadline": reply.deadline,
                "spans": [list(span) for span in reply.spans],
                "runs": [run_of(id, described) for id, described in reply.runs.items()],
            }
        case c.Settled():
            return {"outcomes": [list(pair) for pair in reply.outcomes], "deadline": reply.deadline}
        case c.Finished():
            return {
                "outcomes": [list(pair) for one in reply.completed for pair in one.outcomes],
                "failed": [list(pair) for one in reply.failed for pair in one.outcomes],
                "rest": reply.rest,
                "before": reply.before,
            }
        case Submission():
            return submission_of(reply)
        case c.QueueStats() | c.TenantView() | c.ConsumerView() | DeadChunk():
            return msgspec.structs.asdict(reply)
        case Event():
            what = [reply.what, reply.submission, reply.start, reply.count]
            return [*what, reply.epoch, reply.reservation, reply.attempt, reply.tenant]
        case list():
            return [_win(one) if isinstance(one, c.Win) else reply_of(one) for one in reply]
        case _:
            return reply


def _win(win: c.Win) -> list[int]:
    return [win.start, win.count, win.epoch, win.reservation]
