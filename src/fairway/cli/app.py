"""The command line: one command per verb, errors that say what to do.

Guards: exit code 0 means done, 1 refused or failed, 2 a command that was not understood.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

import msgspec
from cyclopts import App, CycloptsError, CycloptsPanel, MissingArgumentError, Parameter, UnusedCliTokensError
from rich.console import Console

from fairway import __version__
from fairway.cli import commands
from fairway.cli.arguments import STORE, placed
from fairway.errors import FairwayError

DONE, FAILED, USAGE = 0, 1, 2
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

HELP: Final = """\
A fair, durable work queue for multi-tenant data pipelines.

A queue lies in a file, or behind a server. To begin:
  fairway queue create work.db
  fairway put work.db --host --tenant acme hello world
  fairway work work.db --until-empty 'tr a-z A-Z'
  fairway status work.db --state any

`fairway COMMAND --help` tells a command's options, with examples; `fairway demo` shows what Fairway is for."""


def _default(value: object) -> str | None:
    """A default as the help tells it; what is off, empty or left to the queue is not told."""
    if value is None or value is False or value in ("", ()):
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)


app = App(
    name="fairway",
    help=HELP,
    help_format="plaintext",
    version=__version__,
    result_action="return_value",
    group_commands=commands.OTHERS,
    default_parameter=Parameter(negative="", show_default=_default),
)
# Named, not imported: a command loads what it needs when it is called.
commands.register(app)
app.command(
    "fairway.cli.demo:run",
    name="demo",
    help="Run the main job on Spark, fair and unfair.",
    **commands.examples("demo", "demo --embedded --chunks 100000 --seed 2"),
)
app.command(
    "fairway.cli.token:app",
    name="token",
    help="Make, list and revoke the tokens of a server.",
    group=commands.SERVE,
)
app.command(
    "fairway.cli.sim:sim",
    name="sim",
    help="Simulate histories under faults and check each of them.",
    **commands.examples("sim --seeds 1000 --jobs 2", "sim --start 7 --seeds 1 --save histories"),
)
app.command(
    "fairway.cli.verify:verify",
    name="verify",
    help="Check histories that a simulation or a test wrote.",
    **commands.examples("verify histories/seed-7.jsonl"),
)
app.command(
    "fairway.cli.bench:bench",
    name="bench",
    help="Measure Fairway beside its peers, in a source checkout.",
    **commands.examples("bench", "bench fairness --quick"),
)
_ring = App(name="ring", help="Look into a ring between processes.")
_ring.command(
    "fairway.cli.ring:stat",
    name="stat",
    help="Show positions, owners, ages and stuck writers.",
    **commands.examples("ring stat orders"),
)
app.command(_ring)

dev = App(name="dev", help="What developers of Fairway need on their machine.")
dev.command(
    "fairway.cli.dev:cassandra",
    name="cassandra",
    help="Run a real Cassandra until it is interrupted.",
    **commands.examples("dev cassandra", "dev cassandra --nodes 3 --dir cluster"),
)
dev.command(
    "fairway.cli.dev_spark:spark",
    name="spark",
    help="Let local sessions of Spark start in half the time.",
    **commands.examples("dev spark"),
)
app.command(dev)


def run(arguments: Sequence[str]) -> int:
    """Carry out a command and give its exit code."""
    errors = Console(stderr=True)
    json = "--json" in arguments
    chain: tuple[str, ...] = ()
    try:
        chain, _, rest = app.parse_commands(list(arguments))
        words = placed(commands.PLACED, chain, rest, os.environ)
        told = app(words, exit_on_error=False, print_error=False)
        sys.stdout.flush()  # what cannot be written is told here, and not when the interpreter ends
    except CycloptsError as error:
        said = _said(error, chain)
        if json:
            _say_json("usage", said)
        else:
            errors.print(CycloptsPanel(said))
            more = "tells how it is used" if chain else "lists the commands"
            errors.print(f"`{' '.join(('fairway', *chain))} --help` {more}.", markup=False, highlight=False)
        return USAGE
    except FairwayError as error:
        return _failed(errors, json, error.code, str(error))
    except BrokenPipeError:
        _print_no_more()  # whoever read us has seen enough
        return FAILED
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _print_no_more()
        where = f" ({error.filename})" if error.filename else ""
        return _failed(errors, json, "output_full", f"not all could be written: {error.strerror}{where}")
    except KeyboardInterrupt:
        errors.print("fairway: interrupted", style="red")
        return FAILED
    return told if isinstance(told, int) else DONE


def _failed(errors: Console, json: bool, code: str, message: str) -> int:
    if json:
        _say_json(code, message)
    else:
        from fairway.cli import saying

        told = saying.clean(f"fairway: {message}")
        errors.print(told, style="red", markup=False, highlight=False, soft_wrap=True)
    return FAILED


def _print_no_more() -> None:
    """Nothing may be written when the interpreter ends either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(error: CycloptsError, chain: tuple[str, ...]) -> str:
    """What was not understood, in words of ours where those of the parser say too little."""
    if isinstance(error, UnusedCliTokensError):
        return f"Too many arguments: {' '.join(error.unused_tokens or ())}"
    missing = error.argument.name if isinstance(error, MissingArgumentError) and error.argument else ""
    if missing != "PLACE":
        return str(error)
    example = " ".join(("fairway", *chain, "work.db"))
    return f"PLACE is missing, the queue's file or URL: {example}. --store or {STORE} may name it, too."


def _say_json(code: str, message: str) -> None:
    print(msgspec.json.encode({"error": {"code": code, "message": message}}).decode(), file=sys.stderr)


def _have_streams() -> None:
    """Open those of the three streams that were closed: the next file, a queue's, would have their descriptor."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - to the end


def main() -> None:
    """The entry point of the `fairway` script."""
    _have_streams()
    sys.exit(run(sys.argv[1:]))
