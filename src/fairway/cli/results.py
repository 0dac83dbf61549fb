"""`fairway results`: what the workers made of a submission, in index order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from fairway.cli import saying
from fairway.cli.places import HERE, Flag, Place, Where, reading
from fairway.errors import BadArgument
from fairway.face.queue import Queue
from fairway.face.results import Result
from fairway.model.submission import Submission


def results(
    place: Place,
    id: Annotated[int, Parameter(help="The submission.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    folder: Path | None = None,
    raw: Flag = False,
    names: Flag = False,
    where: Where = HERE,
) -> int:
    """Print the results of a submission in index order, a line each; chunks without one are left out.

    Parameters
    ----------
    output
        Write them to this file; it appears when all of them are in it.
    folder
        Write each to a file of its own, named by its index, in this folder.
    raw
        Put no line end after a result.
    names
        Do not read results that are objects; tell their names.
    """
    if output is not None and folder is not None:
        raise BadArgument("give --output or --folder, not both")
    with reading(place, where) as queue:
        one = queue.submission(id)
        if folder is not None:
            many = _to_folder(queue, one, folder, where.json)
        elif output is not None:
            many = _to_file(queue, one, output, raw, where.json)
        else:
            _to_stdout(queue, one, raw, names, where.json)
            return 0
    if where.json:
        saying.say_json({"submission": id, "results": many, "path": str(output or folder)})
    else:
        saying.say(f"{many:,} results are in {output or folder}")
    return 0


def _to_stdout(queue: Queue, one: Submission, raw: bool, names: bool, json: bool) -> None:
    out = sys.stdout.buffer
    sys.stdout.flush()
    for result in queue.results(one.id):
        data = None if names and result.object else result.read()
        if json:
            saying.say_json(saying.with_text({"index": result.index, "object": result.object}, "data", data))
        else:
            out.write(result.object.encode() if data is None and result.object else data or b"")
            out.write(b"" if raw else b"\n")
    out.flush()


def _to_file(queue: Queue, one: Submission, path: Path, raw: bool, quiet: bool) -> int:
    part = path.with_name(path.name + ".part")
    many = 0
    with _file(part) as file:
        for result in _told(queue, one, quiet):
            file.write(result.read())
            file.write(b"" if raw else b"\n")
            many += 1
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    return many


def _to_folder(queue: Queue, one: Submission, folder: Path, quiet: bool) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot(folder, error) from None
    many = 0
    for result in _told(queue, one, quiet):
        with _file(folder / str(result.index)) as file:
            file.write(result.read())
        many += 1
    return many


def _told(queue: Queue, one: Submission, quiet: bool) -> Iterator[Result]:
    """The results, with a bar over the chunks that are done."""
    with saying.progress(quiet) as bar:
        task = bar.add_task("results", total=one.done)
        for result in queue.results(one.id):
            yield result
            bar.advance(task)


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("wb")
    except OSError as error:
        raise _cannot(path, error) from None
    with file:
        yield file


def _cannot(path: Path, error: OSError) -> BadArgument:
    return BadArgument(f"{path} cannot be written: {error.strerror}; give another place")
