"""The command line: one command per verb, errors that say what to do.

Guards: exit code 0 means done, 1 refused or failed, 2 a command that was not understood.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError
from rich.console import Console

from fairway import __version__
from fairway.errors import FairwayError

DONE, FAILED, USAGE = 0, 1, 2

app = App(
    name="fairway",
    help="A fair, durable work queue for multi-tenant data pipelines.",
    version=__version__,
    result_action="return_value",
)
# Named, not imported: a command loads what it needs when it is called.
app.command("fairway.cli.demo:run", name="demo", help="Watch a whale and 20 small tenants share a queue.")
app.command(
    "fairway.cli.explain:explain",
    name="explain",
    help="Say what a strategy would hand out next, and why others wait.",
)
app.command("fairway.cli.sim:sim", name="sim", help="Simulate histories under faults and check each of them.")
app.command(
    "fairway.cli.verify:verify", name="verify", help="Check a history that a simulation or a test wrote."
)


def run(arguments: Sequence[str]) -> int:
    """Carry out a command and give its exit code."""
    errors = Console(stderr=True)
    try:
        told = app(list(arguments), exit_on_error=False, print_error=True, error_console=errors)
    except CycloptsError:
        return USAGE
    except FairwayError as error:
        errors.print(f"fairway: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        errors.print("fairway: interrupted", style="red")
        return FAILED
    return told if isinstance(told, int) else DONE


def main() -> None:
    """The entry point of the `fairway` script."""
    sys.exit(run(sys.argv[1:]))
