"""The pictures and the table of docs/fairness.md, drawn from what a real queue handed out.

Guards: no picture shows what the code does not do; tests/docs/test_pictures.py draws them again and compares.
`python -m tools.pictures` writes them; they are light or dark as the reader's screen is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import fairway

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "img"
STYLE = """\
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #333; }
.small { font-size: 11px; fill: #666; }
.line { stroke: #ccc; stroke-width: 1; fill: none; }
.a { fill: #d55e00; stroke: #d55e00; } .b { fill: #0072b2; stroke: #0072b2; } .c { fill: #009e73; stroke: #009e73; }
.path { fill: none; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; } .small { fill: #aaa; } .line { stroke: #555; }
  .a { fill: #ff9a4d; stroke: #ff9a4d; } .b { fill: #62baf2; stroke: #62baf2; } .c { fill: #46d9ae; stroke: #46d9ae; }
  .path { fill: none; }
}
"""
Finish = dict[str, float]  # when a tenant's last chunk was handed out, as a part of all


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    )
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def words(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    shown = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{shown} text-anchor="{anchor}">{text}</text>'


# -- who is handed what --------------------------------------------------------------------------------------

STORY = (("whale", "a", 30), ("acme", "b", 6), ("zenith", "c", 4))


def turns() -> str:
    """Forty chunks of three tenants in the order in which they are handed out, under two strategies."""
    kinds = {name: kind for name, kind, _ in STORY}
    parts: list[str] = []
    for row, strategy in enumerate(("OldestFirst", "Fair")):
        with fairway.open(":memory:") as q:
            for name, _, chunks in STORY:
                q.submit(chunks=chunks, tenant=name)
            handed = [lease.tenant for lease in q.reserve(max=40, strategy=strategy)]
        y = 34 + row * 44
        parts.append(words(0, y + 13, strategy))
        parts += [
            f'<rect class="{kinds[name]}" x="{100 + i * 16}" y="{y}" width="12" height="18" rx="2"/>'
            for i, name in enumerate(handed)
        ]
    x = 100.0
    for name, kind, chunks in STORY:
        parts.append(f'<rect class="{kind}" x="{x}" y="6" width="12" height="12" rx="2"/>')
        parts.append(words(x + 18, 16, f"{name}: {chunks} chunks", "small"))
        x += 150
    return svg(760, 104, "The order in which chunks of three tenants are handed out", parts)


# -- who has got how much ------------------------------------------------------------------------------------

EVENTS: tuple[tuple[int, str, Callable[[fairway.Queue], object]], ...] = (
    (0, "the whale alone", lambda q: q.submit(chunks=10_000, tenant="whale")),
    (150, "acme comes", lambda q: q.submit(chunks=10_000, tenant="acme")),
    (300, "acme: weight 3", lambda q: q.set_weight("acme", 3)),
    (420, "whale paused", lambda q: q.pause(tenant="whale")),
    (520, "resumed", lambda q: q.resume(tenant="whale")),
)
STEPS = 600


def shares() -> str:
    """What two tenants have got, as time goes by: a newcomer, a weight, a pause."""
    got = {"whale": [0], "acme": [0]}
    with fairway.open(":memory:") as q:
        todo = list(EVENTS)
        for step in range(STEPS):
            while todo and todo[0][0] == step:
                todo.pop(0)[2](q)
            (lease,) = q.reserve()
            for name, counts in got.items():
                counts.append(counts[-1] + (lease.tenant == name))
    parts = [f'<path class="line" d="M60 20V260H{60 + STEPS}"/>']
    for at, label, _ in EVENTS:
        parts.append(f'<path class="line" stroke-dasharray="3 3" d="M{60 + at} 20V260"/>')
        parts.append(words(64 + at, 32, label, "small"))
    for name, kind in (("whale", "a"), ("acme", "b")):
        line = " ".join(f"{60 + i},{260 - n * 0.6:.1f}" for i, n in enumerate(got[name]) if i % 5 == 0)
        parts.append(f'<polyline class="{kind} path" points="{line}"/>')
        parts.append(words(66 + STEPS, 264 - got[name][-1] * 0.6, f"{name}: {got[name][-1]}"))
    parts.append(words(60 + STEPS, 280, "chunks handed out to anybody", "small", "end"))
    parts.append(words(56, 26, "got", "small", "end"))
    return svg(760, 290, "What two tenants have got, as time goes by", parts)


# -- what it costs -------------------------------------------------------------------------------------------

SCENES: dict[str, dict[str, int]] = {
    "a whale of 10,000 chunks, then 20 tenants of 100": {"whale": 10_000}
    | {f"t{i:02}": 100 for i in range(20)},
    "20 tenants of 500 chunks": {f"t{i:02}": 500 for i in range(20)},
}


def finish(tenants: dict[str, int], strategy: str) -> Finish:
    """Serve a scene to the end; when was the last chunk of each tenant handed out?"""
    last: Finish = {}
    total, done = sum(tenants.values()), 0
    with fairway.open(":memory:") as q:
        for name, chunks in tenants.items():
            q.submit(chunks=chunks, tenant=name)
        while leases := q.reserve(max=1000, strategy=strategy):
            for lease in leases:
                done += 1
                last[lease.tenant] = done / total
    return last


def price() -> str:
    """When each tenant's last chunk is handed out, in two scenes, under two strategies."""
    parts: list[str] = []
    for scene, (title, tenants) in enumerate(SCENES.items()):
        top = 20 + scene * 130
        parts.append(words(0, top, title))
        for row, (strategy, kind) in enumerate((("OldestFirst", "a"), ("Fair", "b"))):
            y = top + 30 + row * 36
            found = finish(tenants, strategy)
            mean = sum(found.values()) / len(found)
            parts.append(words(0, y + 5, strategy))
            parts.append(f'<path class="line" d="M100 {y}H660"/>')
            parts += [
                f'<circle class="{kind}" fill-opacity="0.55" cx="{100 + 560 * at:.1f}" cy="{y}" r="5"/>'
                for at in found.values()
            ]
            parts.append(words(672, y + 5, f"mean {mean:.0%}", "small"))
    parts.append(
        words(100, 268, "the first chunk", "small") + words(660, 268, "the last chunk of all", "small", "end")
    )
    return svg(760, 280, "When each tenant is through, as a part of all the work", parts)


def table() -> str:
    """The figures of the picture, for the page."""
    lines = ["| scene | strategy | a tenant is through, mean | first | last |", "|---|---|---|---|---|"]
    for title, tenants in SCENES.items():
        for strategy in ("OldestFirst", "Fair"):
            found = sorted(finish(tenants, strategy).values())
            cells = (sum(found) / len(found), found[0], found[-1])
            lines.append(f"| {title} | `{strategy}` | " + " | ".join(f"{one:.0%}" for one in cells) + " |")
    return "\n".join(lines) + "\n"


PICTURES: dict[str, Callable[[], str]] = {"turns.svg": turns, "shares.svg": shares, "price.svg": price}

if __name__ == "__main__":
    for name, made in PICTURES.items():
        (FOLDER / name).write_text(made(), encoding="utf-8")
    print(table())
