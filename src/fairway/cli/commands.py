"""The commands on a queue: what each is called, where it is, and how it is used.

Guards: a command's module is loaded when it is called, and every example here is a command line that is understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cyclopts import App, Group

WORK: Final = Group.create_ordered("Work")
LOOK: Final = Group.create_ordered("Look")
STEER: Final = Group.create_ordered("Steer")
SERVE: Final = Group.create_ordered("Serve")
SCRIPT: Final = Group.create_ordered("Script")
OTHERS: Final = Group.create_ordered("Commands")  # whatever names no group, behind those that do

_WORK_MORE: Final = (
    "A command gets the payload on its standard input, and what else there is to know in variables: FAIRWAY_TENANT,"
    " FAIRWAY_SUBMISSION, FAIRWAY_INDEX, FAIRWAY_ATTEMPT, FAIRWAY_INFO, FAIRWAY_OBJECT, FAIRWAY_META (JSON)."
    " What it prints is the result. If it ends with 0 the chunk is done, with 65 it is given up, with anything else"
    " it is tried again.\n\n"
    "SIGTERM and Ctrl-C let it finish what it is at and give the rest back; a second one ends that too."
)

_SERVE_MORE: Final = (
    "What is not given here comes from the environment (FAIRWAY_STORE, FAIRWAY_PORT and so on), or else the TOML"
    " file. SIGTERM and Ctrl-C end it: calls under way are answered, and what was acknowledged is stored."
)


@dataclass(frozen=True)
class Command:
    """A command: its function, one sentence, where the list of commands has it, and examples without `fairway`."""

    name: str
    target: str
    help: str
    group: Group | None
    examples: tuple[str, ...]
    more: str = ""  # what else there is to say of it
    place: bool = True  # its first argument is the queue's place


COMMANDS: Final = (
    Command(
        "submit",
        "submit:submit",
        "Submit chunks: lines of files, whole files, or a number.",
        WORK,
        (
            "submit work.db --tenant acme lines.txt",
            "submit work.db -t acme --lines 100 --meta mode=preview - < lines.txt",
            "submit work.db -t acme --whole images/1.png images/2.png --wait",
            "submit work.db -t whale --chunks 1000000 --objects s3://bucket/prefix",
        ),
    ),
    Command(
        "put",
        "submit:put",
        "Put messages: each argument is one, or each line of input.",
        WORK,
        ("put work.db --host -t acme hello world", "put work.db --key invoice-17 --delay 5m 'invoice 17'"),
    ),
    Command(
        "work",
        "work:work",
        "Run a command or a Python function for each chunk.",
        WORK,
        (
            "work work.db 'tr a-z A-Z'",
            "work work.db --jobs 4 --until-empty -- python convert.py --fast",
            "work work.db --function mypackage.pages:render --batch 20",
        ),
        _WORK_MORE,
    ),
    Command(
        "status",
        "status:status",
        "Show a queue with its submissions, or some of them in full.",
        LOOK,
        (
            "status work.db",
            "status work.db --state failed --tenant acme --limit 50",
            "status work.db 910026235415887872 --wait --timeout 10m",
        ),
    ),
    Command(
        "top",
        "top:top",
        "Watch a queue live: throughput, tenants, consumers.",
        LOOK,
        ("top work.db", "top work.db --once --json"),
    ),
    Command(
        "explain",
        "explain:explain",
        "Say what is handed out next, and why others wait.",
        LOOK,
        ("explain work.db", "explain work.db 'MaxSimultaneous(\"tenant\", 5, Fair)'"),
    ),
    Command(
        "results",
        "results:results",
        "Print the results of a submission in index order.",
        LOOK,
        (
            "results work.db 910026235415887872 > results.txt",
            "results work.db 910026235415887872 --folder pages",
        ),
    ),
    Command("dead", "steer:dead", "List the chunks that were given up.", LOOK, ("dead work.db --json",)),
    Command(
        "tenants",
        "tenants:tenants",
        "List tenants; set a weight, pause or resume one.",
        LOOK,
        ("tenants work.db", "tenants work.db acme --weight 5", "tenants work.db whale --pause"),
    ),
    Command(
        "consumers",
        "tenants:consumers",
        "List the named consumers and what they hold.",
        LOOK,
        ("consumers work.db",),
    ),
    Command(
        "audit",
        "audit:audit",
        "Say what a queue's log proves, and write a report.",
        LOOK,
        ("audit work.db", "audit work.db --report audit.html --window-seconds 600", "audit work.db --json"),
        "It runs on Spark: `pip install 'fairway[spark]'` brings it, and it needs Java 17 or newer.",
    ),
    Command("cancel", "steer:cancel", "End submissions now.", STEER, ("cancel work.db 910026235415887872",)),
    Command(
        "redrive",
        "steer:redrive",
        "Give dead and skipped chunks a new life.",
        STEER,
        ("redrive work.db 910026235415887872", "redrive work.db --all"),
    ),
    Command(
        "backup",
        "backup:backup",
        "Copy a file while its queues are at work, and check it.",
        STEER,
        ("backup work.db backup.db", "backup work.db backup.db --replace"),
    ),
    Command(
        "serve",
        "serve:serve",
        "Serve the queues of a file over HTTP, with a dashboard.",
        SERVE,
        (
            "serve work.db",
            "serve work.db --queue images --workers 2 --port 8000",
            "serve --config /etc/fairway.toml",
        ),
        _SERVE_MORE,
        place=False,
    ),
    Command(
        "reserve",
        "reserve:reserve",
        "Reserve chunks and print their leases.",
        SCRIPT,
        ("reserve work.db --max 10 --wait 20s --json", "reserve work.db --consumer nightly --seq 7"),
    ),
    Command(
        "complete",
        "reserve:complete",
        "Complete leases.",
        SCRIPT,
        ("complete work.db RECEIPT --result done", "complete work.db RECEIPT --result @page.html"),
    ),
    Command(
        "fail",
        "reserve:fail",
        "Fail leases: their chunks are tried again, or are dead.",
        SCRIPT,
        ("fail work.db RECEIPT --error 'no network' --delay 1m", "fail work.db RECEIPT --give-up"),
    ),
    Command(
        "renew", "reserve:renew", "Hold leases for longer.", SCRIPT, ("renew work.db RECEIPT --lease 5m",)
    ),
    Command(
        "release", "reserve:release", "Give leases back untouched.", SCRIPT, ("release work.db RECEIPT",)
    ),
    Command(
        "completion",
        "completion:completion",
        "Print a completion script for bash, zsh or fish.",
        SCRIPT,
        ("completion bash > ~/.local/share/bash-completion/completions/fairway",),
        place=False,
    ),
)

QUEUE_COMMANDS: Final = (
    Command(
        "create",
        "queue:create",
        "Make a queue, and its file if there is none.",
        None,
        ("queue create work.db", "queue create work.db --queue images --attempts-max 3 --lease-seconds 5m"),
    ),
    Command("list", "queue:list_", "List the queues of a file or a server.", None, ("queue list work.db",)),
    Command(
        "delete",
        "queue:delete",
        "Delete a queue with all that is in it.",
        None,
        ("queue delete work.db --queue images --yes",),
    ),
    Command(
        "show", "queue:show", "Show what a queue is set to, and its counts.", None, ("queue show work.db",)
    ),
    Command(
        "configure",
        "queue:configure",
        "Change what a queue is set to.",
        None,
        ('queue configure work.db --strategy \'OrElse(SelectOnly("mode", "preview", Fair), Fair)\'',),
    ),
    Command(
        "pause",
        "queue:pause",
        "Hand out nothing more of the queue, a tenant or a submission.",
        None,
        ("queue pause work.db", "queue pause work.db --tenant whale"),
    ),
    Command(
        "resume",
        "queue:resume",
        "Take a pause back.",
        None,
        ("queue resume work.db", "queue resume work.db --tenant whale"),
    ),
)

PLACED: Final = {
    *((one.name,) for one in COMMANDS if one.place),
    *(("queue", one.name) for one in QUEUE_COMMANDS),
}


def register(app: App) -> None:
    """Add the commands of this module."""
    queues = App(
        name="queue", help="Make, list, show, change and delete queues; pause and resume.", group=WORK
    )
    for one in QUEUE_COMMANDS:
        _add(queues, one)
    app.command(queues)
    for one in COMMANDS:
        _add(app, one)


def examples(*lines: str) -> dict[str, Any]:
    """How a command says at the end of its help what one types; without `fairway`."""
    text = "\n".join(f"  fairway {line}" for line in lines)
    return {"help_epilogue": f"Examples:\n{text}", "help_format": "plaintext"}


def _add(app: App, one: Command) -> None:
    grouped: dict[str, Any] = {} if one.group is None else {"group": one.group}
    app.command(
        f"fairway.cli.{one.target}",
        name=one.name,
        help=f"{one.help}\n\n{one.more}" if one.more else one.help,
        **examples(*one.examples),
        **grouped,
    )
