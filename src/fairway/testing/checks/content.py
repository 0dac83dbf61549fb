"""Content: payloads come out as they went in, results as they were accepted, winners are who won.

Guards: DESIGN promise 6 and "exactly one attempt wins".
"""

from __future__ import annotations

from typing import Any

from fairway.testing.deliveries import Receipt
from fairway.testing.facts import Chunk, Facts, Settling, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found


def check_payloads_are_unaltered(history: History) -> list[Violation]:
    """Every payload that was handed out is the one that was submitted for that chunk."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        handed = {
            (submission, index): text for submission, index, text in delivery.request.ok.get("payloads", [])
        }
        for (submission, index), text in handed.items():
            for offered in facts.by_id.get(submission, []):
                payloads = offered.given.get("payloads")
                if (
                    payloads is not None
                    and not offered.known
                    and (index >= len(payloads) or payloads[index] != text)
                ):
                    what = f"chunk {(submission, index)} was handed out with another payload"
                    violations.append(
                        found("payloads_are_unaltered", what, offered.request, delivery.request)
                    )
        for submission, start, count, _ in delivery.spans:
            offers = [o for o in facts.by_id.get(submission, []) if not o.known]
            inline = any(o.given.get("payloads") is not None for o in offers)
            gone = facts.may_be_purged(submission, delivery.request.end, delivery.request.end_t)
            if inline and not gone and "payloads" in delivery.request.ok:
                missing = [i for i in range(start, start + count) if (submission, i) not in handed]
                if missing:
                    what = f"chunk {(submission, missing[0])} was handed out without its payload"
                    violations.append(found("payloads_are_unaltered", what, delivery.request))
    return violations


def _given(facts: Facts, settling: Settling) -> str | None:
    results = settling.request.args.get("results")
    # What a batch does not name has no place among its results, and no result.
    return None if results is None or settling.place >= len(results) else results[settling.place]


def _may_have_won(chunk: Chunk, read: Request) -> list[Settling]:
    return [
        s
        for s in chunk.settlings
        if s.verb == "complete" and s.outcome in ("", "done", "already") and s.request.begin < read.end
    ]


def _sure_wins(chunk: Chunk, read: Request) -> list[Settling]:
    return [
        s for s in chunk.settlings if s.outcome in ("done", "already") and 0 <= s.request.end < read.begin
    ]


def check_results_are_kept(history: History) -> list[Violation]:
    """Results read back are those that were accepted: none missing, none other."""
    facts = facts_of(history)
    by_submission = _chunks_by_submission(facts)
    violations: list[Violation] = []
    for read in history.of("results"):
        if not read.answered:
            continue
        submission = read.args["sub"]
        if facts.may_be_purged(submission, read.end, read.end_t):
            continue
        texts = dict(read.ok)
        if len(texts) != len(read.ok) or [i for i, _ in read.ok] != sorted(texts):
            violations.append(found("results_are_kept", "results come twice or out of order", read))
        for index, chunk in by_submission.get(submission, {}).items():
            for win in _sure_wins(chunk, read):
                given = _given(facts, win)
                if win.outcome == "done" and given != texts.get(index):
                    what = f"the result of chunk {(submission, index)} is {texts.get(index)!r}, accepted was {given!r}"
                    violations.append(found("results_are_kept", what, win.request, read))
        for index, text in texts.items():
            possible = _may_have_won(by_submission.get(submission, {}).get(index, Chunk()), read)
            if text not in [_given(facts, one) for one in possible]:
                what = f"the result {text!r} of chunk {(submission, index)} was never given"
                violations.append(found("results_are_kept", what, read))
    return violations


def check_winners_are_true(history: History) -> list[Violation]:
    """Who won a chunk is the attempt whose result was accepted."""
    facts = facts_of(history)
    by_submission = _chunks_by_submission(facts)
    violations: list[Violation] = []
    for read in history.of("winners"):
        if not read.answered:
            continue
        won = dict(_unrolled(read.ok))
        for index, chunk in by_submission.get(read.args["sub"], {}).items():
            for win in _sure_wins(chunk, read):
                if won.get(index) != win.receipt:
                    what = (
                        f"chunk {(read.args['sub'], index)} was won by {win.receipt}, not by {won.get(index)}"
                    )
                    violations.append(found("winners_are_true", what, win.request, read))
        for index, receipt in won.items():
            possible = _may_have_won(by_submission.get(read.args["sub"], {}).get(index, Chunk()), read)
            if receipt not in [one.receipt for one in possible] and not facts.ends_unnamed:
                what = f"chunk {(read.args['sub'], index)} is done by {receipt}, which never completed it"
                violations.append(found("winners_are_true", what, read))
    return violations


def _unrolled(wins: list[Any]) -> list[tuple[int, Receipt]]:
    return [
        (index, (epoch, count)) for start, many, epoch, count in wins for index in range(start, start + many)
    ]


def _chunks_by_submission(facts: Facts) -> dict[int, dict[int, Chunk]]:
    memo = facts.history.memo
    if "by_submission" not in memo:
        by_submission: dict[int, dict[int, Chunk]] = {}
        for (submission, index), chunk in facts.chunks.items():
            by_submission.setdefault(submission, {})[index] = chunk
        memo["by_submission"] = by_submission
    return memo["by_submission"]
