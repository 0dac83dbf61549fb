"""The checker of bucket histories: what was promised to callers, held against what they and the storage saw.

Guards: what it reports is proven by the history; a call without an answer may have happened, and counts for both.

Operations: put (uids, bodies, due), redrive (the same, and the letters that become them), take (tried nonces and
leases: uid, nonce, version, attempts), complete, renew, release, fail, give_up (uids, versions; a word for each), dead,
purge, delete, create. Notes: took and finished are what the storage carried out, drained is what it holds at the end;
power_loss: what was not synced may be forgotten, as leases are, whose versions are then given again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from fairway.testing.history import History, Note, Request
from fairway.testing.violation import Violation, found

Check = Callable[[History], Iterator[Violation]]


def _notes(history: History, what: str) -> list[tuple[int, Note]]:
    return [(place, note) for place, note in history.notes if note.what == what]


def _end(history: History) -> dict[str, Any]:
    notes = _notes(history, "drained")
    return notes[-1][1].args if notes else {}


def _life(history: History, place: int) -> int:
    """How often the power was lost before a line."""
    losses = history.memo.setdefault("losses", [at for at, _ in _notes(history, "power_loss")])
    return bisect_right(losses, place)


def _accepted(history: History) -> dict[str, Request]:
    """Messages whose put was answered, by uid."""
    return {uid: request for request in _puts(history) if request.answered for uid in request.args["uids"]}


def _puts(history: History) -> Iterator[Request]:
    """Whatever offers messages."""
    yield from history.of("put", "redrive")


def _over(history: History) -> set[str]:
    """Messages that ended, or may have."""
    return set(_finished(history)) | _maybe_finished(history) | _dead(history)


def _finished(history: History) -> dict[str, int]:
    """Where each message was first completed, as far as the storage tells, else as callers were told."""
    places: dict[str, int] = {}
    for place, note in _notes(history, "finished"):
        for uid in note.args["uids"]:
            places.setdefault(uid, place)
    if not places:
        for request in history.of("complete"):
            told = request.ok if request.answered else []
            for uid, word in zip(request.args["uids"], told or [], strict=False):
                if word in ("done", "already"):
                    places[uid] = min(places.get(uid, request.end), request.end)
    return places


def _maybe_finished(history: History) -> set[str]:
    """Messages that may have been completed by a call whose answer nobody saw, or that said so."""
    maybe: set[str] = set()
    if _notes(history, "finished"):
        return maybe
    for request in history.of("complete"):
        if not request.answered:
            maybe.update(request.args["uids"])
        else:
            pairs = zip(request.args["uids"], request.ok, strict=True)
            maybe.update(uid for uid, word in pairs if word == "unknown")
    return maybe


def _dead(history: History) -> set[str]:
    seen = {uid for request in history.of("dead") if request.answered for uid in request.ok}
    return seen | set(_end(history).get("dead", []))


def _leases(history: History) -> Iterator[tuple[Request, list[Any], str]]:
    for request in history.of("take"):
        if request.answered:
            for lease, body in zip(request.ok["leases"], request.ok["bodies"], strict=True):
                yield request, lease, body


def check_accepted_is_not_lost(history: History) -> Iterator[Violation]:
    """Told accepted means: completed or a dead letter in the end."""
    end = _end(history)
    over = _over(history)
    for uid, request in _accepted(history).items():
        if request.args["queue"] == end.get("live") and uid not in over:
            stuck = uid in end["waiting"]
            yield found("accepted_is_not_lost", f"message {uid} is {'stuck' if stuck else 'lost'}", request)


def check_nothing_after_completion(history: History) -> Iterator[Violation]:
    """What is completed is never delivered again."""
    finished = _finished(history)
    for place, note in _notes(history, "took"):
        for uid in note.args["uids"]:
            if finished.get(uid, place) < place:
                what = f"message {uid} was taken after it was completed"
                yield found("nothing_after_completion", what, places=(finished[uid], place))
    for request, lease, _ in _leases(history):
        uid = lease[0]
        if finished.get(uid, request.begin) < request.begin:
            what = f"message {uid} was delivered after it was completed"
            yield found("nothing_after_completion", what, request, places=(finished[uid],))


def check_completed_or_dead(history: History) -> Iterator[Violation]:
    """A message ends once."""
    finished = _finished(history)
    for uid in sorted((_dead(history) | _told_dead(history)) & set(finished)):
        yield found("completed_or_dead", f"message {uid} is completed and dead", places=(finished[uid],))


def _told_dead(history: History) -> set[str]:
    """Messages of which somebody was told that they are dead."""
    given_up = [request for request in history.of("fail", "give_up") if request.answered]
    pairs = (pair for one in given_up for pair in zip(one.args["uids"], one.ok, strict=True))
    return {uid for uid, word in pairs if word == "dead"}


def check_one_dead_letter(history: History) -> Iterator[Violation]:
    """A dead letter that was removed does not come back."""
    gone: dict[str, Request] = {}
    for request in history.of("purge", "redrive"):
        if request.answered:
            for uid in request.args["letters" if request.op == "redrive" else "uids"]:
                gone.setdefault(uid, request)
    for request in history.of("dead"):
        for uid in request.ok if request.answered else []:
            if uid in gone and gone[uid].end < request.begin:
                yield found("one_dead_letter", f"dead letter {uid} came back", gone[uid], request)
    for uid in set(gone) & set(_end(history).get("dead", [])):
        yield found("one_dead_letter", f"dead letter {uid} came back", gone[uid])


def check_dead_letters_are_not_lost(history: History) -> Iterator[Violation]:
    """A dead letter stays until it is purged or becomes a message; whoever stops in a redrive loses neither."""
    end, over = _end(history), _over(history)
    purged = {uid for request in history.of("purge") for uid in request.args["uids"]}
    became: dict[str, list[str]] = defaultdict(list)
    for request in history.of("redrive"):
        for letter, uid in zip(request.args["letters"], request.args["uids"], strict=True):
            became[letter].append(uid)
    for request in history.of("dead"):
        for uid in request.ok if request.answered and request.args["queue"] == end.get("live") else []:
            if uid not in end["dead"] and uid not in purged and not over.intersection(became[uid]):
                what = f"dead letter {uid} is gone, and no message came of it"
                yield found("dead_letters_are_not_lost", what, request)


def check_no_lease_is_burnt(history: History) -> Iterator[Violation]:
    """What was taken for a consumer that lives reaches it."""
    tried: dict[str, Request] = {}
    given: set[tuple[str, str]] = set()
    for request in history.of("take"):
        if request.answered:
            tried |= dict.fromkeys(request.ok["tried"], request)
            given |= {(lease[0], lease[1]) for lease in request.ok["leases"]}
    moved: dict[str, list[int]] = defaultdict(list)
    for place, note in history.notes:
        for uid in note.args["uids"] if note.what in ("took", "finished", "doomed") else ():
            moved[uid].append(place)
    for place, note in _notes(history, "took"):
        request = tried.get(note.args["nonce"])
        if request is None or request.args["queue"] != _end(history).get("live"):
            continue  # what a deleted queue held is gone
        # A lease that ran out before its consumer came to was his, but is no longer worth telling.
        until = note.args["until"] - request.ok["skew"]
        if until <= max(request.end_t, note.t):
            continue
        for uid in note.args["uids"]:
            # Where clocks differ another may have thought that it ran out, and taken or buried it.
            retaken = any(place < other < request.end for other in moved[uid])
            if (uid, note.args["nonce"]) not in given and not retaken:
                what = f"message {uid} was leased, and nobody was told"
                yield found("no_lease_is_burnt", what, request, places=(place,))


def check_leases_hide(history: History) -> Iterator[Violation]:
    """What is leased is taken by nobody else before that lease is over on his clock, unless it was given back."""
    skew = history.header.config.get("skew", 0.0)
    back: dict[str, list[Request]] = defaultdict(list)
    for request in history.of("renew", "release", "fail", "give_up"):
        for uid in request.args["uids"]:
            back[uid].append(request)
    before: dict[str, tuple[int, float]] = {}
    for place, note in _notes(history, "took"):
        for uid in note.args["uids"]:
            earlier, until = before.get(uid, (place, 0.0))
            given_back = any(r.begin < place and not (r.answered and r.end < earlier) for r in back[uid])
            given_back |= _life(history, earlier) < _life(history, place)
            if until > note.t + skew + 0.001 and not given_back:
                what = f"message {uid} was taken at {note.t:.3f}, leased until {until:.3f}"
                yield found("leases_hide", what, places=(earlier, place))
            before[uid] = place, note.args["until"]


def check_nothing_after_delete(history: History) -> Iterator[Violation]:
    """A put that begins after the delete of its queue was answered is not accepted."""
    deleted = {request.ok: request for request in history.of("delete") if request.answered}
    for request in _puts(history):
        gone = deleted.get(request.args["queue"])
        if gone is not None and request.answered and gone.end < request.begin:
            yield found("nothing_after_delete", "a put was accepted by a deleted queue", gone, request)


def check_nothing_crosses(history: History) -> Iterator[Violation]:
    """What is delivered was put into this queue, and is unaltered."""
    offered = {
        uid: (request, body)
        for request in _puts(history)
        for uid, body in zip(request.args["uids"], request.args["bodies"], strict=True)
    }
    for request, lease, body in _leases(history):
        put = offered.get(lease[0])
        if put is None:
            yield found("nothing_crosses", f"message {lease[0]} was never put", request)
        elif put[0].args["queue"] != request.args["queue"]:
            yield found("nothing_crosses", f"message {lease[0]} is of another queue", put[0], request)
        elif put[1] != body:
            yield found("nothing_crosses", f"message {lease[0]} is {body!r}, was {put[1]!r}", put[0], request)


def check_not_before_due(history: History) -> Iterator[Violation]:
    """Nothing is delivered before its time, as far as clocks agree."""
    due = {uid: request for request in _puts(history) for uid in request.args["uids"]}
    skew = history.header.config.get("skew", 0.0)
    for request, lease, _ in _leases(history):
        put = due.get(lease[0])
        if put is not None and request.end_t < put.args["due"] - 2 * skew - 0.001:
            yield found("not_before_due", f"message {lease[0]} came too early", put, request)


def check_deliveries_are_bounded(history: History) -> Iterator[Violation]:
    """At most attempts_max deliveries count."""
    most = history.header.config["attempts_max"]
    for request, lease, _ in _leases(history):
        if lease[3] > most:
            yield found("deliveries_are_bounded", f"delivery {lease[3]} of {most} of {lease[0]}", request)


def check_deaths_have_a_cause(history: History) -> Iterator[Violation]:
    """A message dies of its last delivery, unless somebody gave it up."""
    least = history.header.config["attempts_max"]
    given_up = {uid: one.begin for one in reversed(history.of("give_up")) for uid in one.args["uids"]}
    takes: dict[str, int] = defaultdict(int)
    for place, note in history.notes:
        if note.what not in ("took", "doomed"):
            continue
        for uid in note.args["uids"]:
            takes[uid] += note.what == "took"
            if note.what == "doomed" and takes[uid] < least and given_up.get(uid, place) >= place:
                what = f"message {uid} was given up after {takes[uid]} of {least} deliveries"
                yield found("deaths_have_a_cause", what, places=(place,))
    attempts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for _, lease, _ in _leases(history):
        attempts[lease[0]].append((lease[2], lease[3]))
    for request in history.of("fail"):
        triples = zip(request.args["uids"], request.args["versions"], request.ok or (), strict=False)
        for uid, version, word in triples:
            # A renewal raises the version and counts nothing.
            until = [one for one in attempts[uid] if one[0] <= version]
            if _life(history, request.begin):
                until = [(many, many) for _, many in until]  # which was last their versions do not tell
            _, many = max(until, default=(0, least))
            if word == "dead" and many < least and given_up.get(uid, request.end) >= request.end:
                what = f"message {uid} was dead after delivery {many} of {least}"
                yield found("deaths_have_a_cause", what, request)


def check_versions_rise(history: History) -> Iterator[Violation]:
    """No two leases of a message have one version."""
    seen: dict[tuple[str, int, int], Request] = {}
    for request, lease, _ in _leases(history):
        other = seen.setdefault((lease[0], lease[2], _life(history, request.end)), request)
        if other is not request:
            yield found("versions_rise", f"version {lease[2]} of {lease[0]} twice", other, request)


def check_stale_receipts_are_refused(history: History) -> Iterator[Violation]:
    """A receipt changes nothing after a later lease of its message was handed out."""
    taken: dict[str, list[tuple[int, Request]]] = defaultdict(list)
    for request, lease, _ in _leases(history):
        taken[lease[0]].append((lease[2], request))
    for request in history.of("complete", "renew", "release", "fail", "give_up"):
        if not request.answered:
            continue
        triples = zip(request.args["uids"], request.args["versions"], request.ok, strict=True)
        for uid, version, word in triples:
            if word in ("lost", "unknown", "already"):
                continue
            for later, other in taken[uid]:
                if _life(history, other.end) < _life(history, request.begin):
                    continue  # forgotten, it may be
                if later > version and other.end < request.begin and not _said_before(history, request, uid):
                    what = f"{request.op} of {uid} by version {version} after version {later} was out"
                    yield found("stale_receipts_are_refused", what, other, request)


def _said_before(history: History, request: Request, uid: str) -> bool:
    """Whether the same receipt and verb had been used before: then the same answer is right."""
    version = dict(zip(request.args["uids"], request.args["versions"], strict=True))[uid]
    return any(
        (uid, version) in zip(other.args["uids"], other.args["versions"], strict=True)
        for other in history.of(request.op)
        if other.begin < request.begin
    )


def check_everything_is_swept(history: History) -> Iterator[Violation]:
    """In the end the floor is above every bucket and nothing is left behind."""
    end = _end(history)
    if not end or not end["live"]:
        yield Violation("everything_is_swept", "the history does not end with a live queue", ())
        return
    for what in ("above_floor", "below_floor", "unnamed", "ghosts"):
        if end[what]:
            yield Violation("everything_is_swept", f"{what}: {end[what]} in the end", ())


def check_counts_are_true(history: History) -> Iterator[Violation]:
    """Sizes at rest are the truth."""
    end = _end(history)
    if end and end["live"] and end["counted"] != [len(end["waiting"]), 0, 0, len(end["dead"])]:
        what = f"counted {end['counted']}, there are {len(end['waiting'])} and {len(end['dead'])} dead"
        yield Violation("counts_are_true", what, ())


CHECKS: tuple[Check, ...] = (
    check_accepted_is_not_lost,
    check_nothing_after_completion,
    check_completed_or_dead,
    check_one_dead_letter,
    check_dead_letters_are_not_lost,
    check_no_lease_is_burnt,
    check_leases_hide,
    check_nothing_after_delete,
    check_nothing_crosses,
    check_not_before_due,
    check_deliveries_are_bounded,
    check_deaths_have_a_cause,
    check_versions_rise,
    check_stale_receipts_are_refused,
    check_everything_is_swept,
    check_counts_are_true,
)


def check_history(history: History) -> list[Violation]:
    """Everything that the history proves to be wrong."""
    return [violation for check in CHECKS for violation in check(history)]
