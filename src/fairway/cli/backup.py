"""`fairway backup`: a copy of a file at one moment, while its queues are at work."""

from __future__ import annotations

from pathlib import Path

from fairway.cli import saying
from fairway.cli.places import HERE, Flag, Place, Where, file_of
from fairway.runtime.backup import back_up


def backup(place: Place, to: Path, /, *, replace: Flag = False, where: Where = HERE) -> int:
    """Copy a file and all its queues while they are at work, and check the copy.

    Parameters
    ----------
    to
        The file to make.
    replace
        Put it in the place of a file that is there.
    """
    with saying.progress(where.json, in_bytes=False) as bar:
        task = bar.add_task("copying pages", total=None)
        made = back_up(
            file_of(place),
            to,
            replace=replace,
            tell=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if where.json:
        saying.say_json(made)
    else:
        names = ", ".join(
            f"{stats.queue} ({saying.many(stats.submissions_active, 'active submission')})"
            for stats in made.queues
        )
        saying.say(f"backed up to {to}: {saying.size(made.bytes)}, checked; queues: {names or 'none'}")
    return 0
