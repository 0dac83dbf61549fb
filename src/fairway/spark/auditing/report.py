"""The report: one HTML file that opens from disk, says at a glance what was lost, and shows who waited for whom.

Guards: the file needs nothing from outside: no script, no font, no picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from fairway.errors import BadArgument
from fairway.spark.auditing.faults import KINDS
from fairway.spark.auditing.pictures import bars, colour, lines, seconds
from fairway.spark.auditing.summary import Summary

_CSS = files("fairway.spark.auditing").joinpath("report.css")
_HEAD = (
    "tenant", "weight", "chunks", "completed", "retries",
    "wait p50", "p95", "p99", "run p50", "p95", "p99", "worst lag",
)  # fmt: skip
_MADE = "Every figure is from the queue's own event log, by <code>fairway audit</code>."
_WORDS = {
    "lost": "accepted, but no result and no end that explains it",
    "duplicate": "a second result for one chunk",
    "stale": "a result of a reservation that was no longer the latest",
    "disorder": "handed out while another held it, or after its end",
}
_SHORT = {
    "lost": "chunks without a result",
    "duplicate": "chunks with two results",
    "stale": "results of an old hand-out",
    "disorder": "chunks handed out wrongly",
}


def write_report(
    path: str | Path,
    summaries: Sequence[Summary],
    *,
    title: str | None = None,
    checks: Sequence[tuple[bool, str]] = (),
    note: str = "",
) -> Path:
    """Write the report of one audit, or of several side by side (the last one is what the others are held against)."""
    if not 1 <= len(summaries) <= 4:
        raise BadArgument(f"a report shows 1 to 4 audits, not {len(summaries)}")
    target = Path(path)
    text = page(summaries, title or headline(summaries), checks, note)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadArgument(
            f"the report cannot be written to {target}: {error.strerror}; give another path"
        ) from None
    return target


def headline(summaries: Sequence[Summary]) -> str:
    """What there is to say in one line."""
    faults = sum(s.counts.faults for s in summaries)
    if faults:
        return f"{faults:,} chunks are not as promised"
    first, last = summaries[0], summaries[-1]
    before, after = first.small_wait, last.small_wait
    if len(summaries) > 1 and before and after and before > after:
        return (
            f"Under {last.name} small tenants waited {before / after:,.1f} times less than under {first.name}"
        )
    return f"{last.counts.completed:,} chunks, none lost, none twice, none stale"


def page(summaries: Sequence[Summary], title: str, checks: Sequence[tuple[bool, str]], note: str) -> str:
    """The whole file as text."""
    parts = [
        _figures(summaries),
        _checks(checks),
        _waits(summaries),
        _jain(summaries),
        _throughput(summaries),
        *(_faults(s) for s in summaries if s.faults),
        *(_table(s, len(summaries) == 1) for s in summaries),
        f"<footer><p>{escape(note)}</p><p>{_MADE}</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{_CSS.read_text(encoding='utf-8')}</style></head>\n"
        f'<body><main><h1>{escape(title)}</h1><p class="lead">{_lead(summaries)}</p>\n'
        + "\n".join(part for part in parts if part)
        + "\n</main></body></html>\n"
    )


def _lead(summaries: Sequence[Summary]) -> str:
    last = summaries[-1]
    again = ("", "", ", served twice", ", served three times", ", served four times")[len(summaries)]
    lead = f"{last.counts.chunks:,} chunks of {last.tenants_all:,} tenants{again}."
    if last.tenants:
        lead += f" Largest tenant: {escape(last.largest)}, {last.tenants[0]['chunks']:,} chunks."
    return lead


def _figures(summaries: Sequence[Summary]) -> str:
    shown = [kind for kind in KINDS if kind != "disorder" or any(s.counts.disorder for s in summaries)]
    boxes: list[str] = []
    for kind in shown:
        count = sum(getattr(s.counts, kind) for s in summaries)
        boxes.append(
            f'<div class="figure {"bad" if count else "good"}" title="{_WORDS[kind]}">'
            f"<b>{count:,}</b><span>{kind}</span><small>{_SHORT[kind]}</small></div>"
        )
    return f'<div class="figures">{"".join(boxes)}</div>'


def _checks(checks: Sequence[tuple[bool, str]]) -> str:
    rows = "".join(f"<li{'' if good else ' class=wrong'}>{escape(text)}</li>" for good, text in checks)
    return f'<ul class="facts">{rows}</ul>' if rows else ""


def _legend(summaries: Sequence[Summary], told: Sequence[str]) -> str:
    names = (
        f'<span><i class="s{colour(i, len(summaries))}"></i>{escape(s.name)} <small>{told[i]}</small></span>'
        for i, s in enumerate(summaries)
    )
    return f'<div class="legend">{"".join(names)}</div>'


def _waits(summaries: Sequence[Summary]) -> str:
    told = [f"(largest {_or(s.wait(s.largest))}, median of others {_or(s.small_wait)})" for s in summaries]
    return (
        "<section><h2>How long each tenant waited</h2>"
        '<p class="note">From submit to hand-out, the average of its chunks. Shorter is better.</p>'
        f"{_legend(summaries, told)}{bars(summaries)}</section>"
    )


def _or(value: float | None) -> str:
    return "none" if value is None else seconds(value)


def _jain(summaries: Sequence[Summary]) -> str:
    series = [(s.name, [(w["at"], w["jain"]) for w in s.windows], s.window_seconds) for s in summaries]
    if not any(y is not None for _, points, _ in series for _, y in points):
        return ""
    told = [f"({s.jain:.2f} on average)" if s.jain is not None else "" for s in summaries]
    return (
        "<section><h2>How evenly the work was shared</h2>"
        '<p class="note">Jain\'s index of what the tenants that waited were handed, by weight:'
        " 1 is the same for all, near 0 is all for one."
        " Gaps: no two of them waited all through, so nothing was to be shared.</p>"
        f"{_legend(summaries, told)}{lines(series, 1.0, '')}</section>"
    )


def _throughput(summaries: Sequence[Summary]) -> str:
    series = [(s.name, [(w["at"], w["per_second"]) for w in s.windows], s.window_seconds) for s in summaries]
    told = [f"({s.per_second:,.1f} per second in all)" for s in summaries]
    return (
        "<section><h2>Throughput</h2>"
        '<p class="note">Chunks completed per second, over time.</p>'
        f"{_legend(summaries, told)}{lines(series, None, '/s')}</section>"
    )


def _faults(summary: Summary) -> str:
    rows = "".join(
        f"<tr><td>{row['kind']}</td><td>{escape(str(row['tenant']))}</td><td>{row['submission']}</td>"
        f"<td>{'?' if row['first'] is None else row['first']}</td><td>{row['count']:,}</td>"
        f"<td>{'' if row['number'] is None else row['number']}</td><td>{escape(row['why'])}</td></tr>"
        for row in summary.faults
    )
    return (
        f"<section><h2>What is wrong under {escape(summary.name)}</h2><div class='scroll'><table><tr><th>fault</th>"
        "<th>tenant</th><th>submission</th><th>first chunk</th><th>chunks</th><th>group</th><th>why</th></tr>"
        f"{rows}</table></div></section>"
    )


def _table(summary: Summary, opened: bool) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(row))}</tr>" for row in summary.tenants
    )
    return (
        f"<details{' open' if opened else ''}><summary>{escape(summary.name)}: every tenant in figures</summary>"
        f"<div class='scroll'><table><tr>{''.join(f'<th>{name}</th>' for name in _HEAD)}</tr>{rows}</table></div>"
        '<p class="note">The worst lag is how many chunks the tenant was behind its fluid fair share.</p></details>'
    )


def _cells(row: dict[str, object]) -> list[str]:
    times = ("wait_p50", "wait_p95", "wait_p99", "run_p50", "run_p95", "run_p99")
    lag = row["lag"]
    return [
        escape(str(row["tenant"])),
        f"{row['weight'] or 1:g}",
        *(f"{row[name] or 0:,}" for name in ("chunks", "completed", "retries")),
        *("" if (time := row[name]) is None else seconds(float(str(time))) for name in times),
        "" if lag is None else f"{float(str(lag)):.1f}",
    ]
