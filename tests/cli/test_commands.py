"""The list of commands: what there is, that each can be asked for help, and that its examples are understood."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, USAGE, app
from fairway.cli.arguments import placed
from fairway.cli.commands import COMMANDS, PLACED, QUEUE_COMMANDS, Command
from tests.cli.conftest import Cli

ALL = [*(((one.name,), one) for one in COMMANDS), *((("queue", one.name), one) for one in QUEUE_COMMANDS)]

LISTED = """\
Work: put queue submit work
Look: audit consumers dead explain results status tenants top
Steer: backup cancel redrive
Serve: serve token
Script: complete completion fail release renew reserve
Commands: bench demo dev ring sim verify --help --version"""


def panels(text: str) -> dict[str, list[str]]:
    """The names in each panel of a help text."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("╭─"):
            title = line.strip("╭─╮ ")
        elif line.startswith("│ ") and line[2] != " ":
            found.setdefault(title, []).append(line.split()[1])
    return found


def test_the_list_of_commands_is_this(cli: Cli) -> None:
    told = cli("--help")
    assert told.code == DONE
    # What one begins with comes first; what proves and measures Fairway itself comes last.
    assert "\n".join(f"{title}: {' '.join(names)}" for title, names in panels(told.out).items()) == LISTED


def test_the_list_of_commands_begins_with_lines_that_can_be_typed(cli: Cli) -> None:
    lines = [line.strip() for line in cli().out.splitlines() if line.startswith("  fairway ")]
    assert len(lines) == 4
    for line in lines:
        assert cli(*shlex.split(line)[1:]).code == DONE, line
    assert "completed" in cli("status", "work.db", "--state", "any").out


def test_a_help_tells_defaults_that_say_something_and_no_option_that_only_takes_another_back(
    cli: Cli,
) -> None:
    assert "[default: 1]" in cli("submit", "--help").out
    for chain in (
        ["submit"],
        ["put"],
        ["work"],
        ["serve"],
        ["demo"],
        ["token", "create"],
        ["sim"],
        ["ring", "stat"],
    ):
        told = cli(*chain, "--help").out
        for noise in ("--no-", "--empty-", "[default: False]", "[default: ()]", '[default: ""]'):
            assert noise not in told, (chain, noise)


def test_a_sentence_of_the_list_fits_on_a_line_of_80() -> None:
    assert [one.name for _, one in ALL if len(one.help) > 62 or not one.help.endswith(".")] == []


@pytest.mark.parametrize(
    ("chain", "one"), ALL, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_has_help_with_examples_and_takes_what_all_take(
    cli: Cli, chain: tuple[str, ...], one: Command
) -> None:
    told = cli(*chain, "--help")
    assert told.code == DONE
    assert one.help in told.out
    assert all(f"  fairway {line}" in told.out for line in one.examples)
    if one.place:
        assert "PLACE" in told.out and all(option in told.out for option in ("--queue", "--json", "--store"))


def examples() -> Iterator[str]:
    for chain, one in ALL:
        assert one.examples
        for line in one.examples:
            assert line.startswith(" ".join(chain) + " ")
            yield line


@pytest.mark.parametrize("line", list(examples()))
def test_every_example_is_a_command_line_that_is_understood(line: str) -> None:
    words = shlex.split(line)
    for redirection in ("<", ">"):
        if redirection in words:
            words = words[: words.index(redirection)]
    words = placed(PLACED, *app.parse_commands(words)[::2], {})
    command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert command.__name__.rstrip("_") == words[1 if words[0] == "queue" else 0]
    if tuple(words[:1]) in PLACED:
        assert bound.arguments["place"] == "work.db"


OTHERS = (
    "token create, token list, token revoke, demo, sim, verify, bench, ring stat, dev cassandra, dev spark"
)


@pytest.mark.parametrize("chain", OTHERS.split(", "))
def test_a_command_that_is_not_on_a_queue_has_examples_that_are_understood(cli: Cli, chain: str) -> None:
    lines = [line for line in cli(*chain.split(), "--help").out.splitlines() if line.startswith("  fairway ")]
    assert lines
    for line in lines:
        assert line.startswith(f"  fairway {chain}")
        app.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_every_command(cli: Cli, shell: str) -> None:
    told = cli("completion", shell)
    assert told.code == DONE
    for (name, *_), _ in ALL:
        assert name in told.out
    assert "until-empty" in told.out and "attempts-max" in told.out
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=told.out, text=True).returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nosuch"], "nosuch"),
        (["status"], "fairway status work.db"),
        (["queue", "show"], "fairway queue show work.db"),
        (["serve", "work.db", "other.db"], "Too many arguments: other.db"),
        (["status", "work.db", "--bogus"], "--bogus"),
        (["status", "work.db", "not-an-id"], "not-an-id"),
        (["submit", "work.db", "--delay", "soon"], "write 90, 90s, 5m"),
        (["submit", "work.db", "--meta", "x", "y.txt"], "write key=text"),
        (["submit", "work.db", "--meta", "x:=many"], "not a whole number"),
        (["submit", "work.db", "--policy", "maybe"], "fail_fast"),
        (["reserve", "work.db", "--max", "0"], "0"),
        (["completion", "powershell"], "powershell"),
    ],
)
def test_what_is_not_understood_says_so_and_ends_with_2(cli: Cli, words: list[str], why: str) -> None:
    told = cli(*words)
    assert (told.code, told.out) == (USAGE, "")
    assert why in " ".join(told.err.replace("│", " ").split())
    assert "--help` " in told.err.splitlines()[-1]  # where more is told
    told = cli(*words, "--json")
    assert (told.code, told.out) == (USAGE, "")
    assert told.error["code"] == "usage"


def test_the_list_of_commands_loads_no_engine() -> None:
    script = "import sys, fairway.cli.app; sys.exit('fairway.engine.engine' in sys.modules or 'apsw' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def _run(end: str, *arguments: object) -> tuple[int, str]:
    """A command of its own process behind a redirection of the shell; its exit code, and what it said of errors."""
    command = [sys.executable, "-m", "fairway.cli", *map(str, arguments)]
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {end}', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=120
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_output_that_cannot_be_written_is_told_in_one_line(tmp_path: Path, json: tuple[str, ...]) -> None:
    file = tmp_path / "work.db"
    fairway.open(file).close()
    for command in ("status", "explain"):
        code, told = _run(">/dev/full", command, file, *json)
        assert code == 1 and "No space left on device" in told and len(told.splitlines()) == 1


@pytest.mark.parametrize("end", [">&-", "<&-", "<&- >&-"])
def test_a_stream_that_is_closed_is_no_error_and_no_file_takes_its_place(tmp_path: Path, end: str) -> None:
    file = tmp_path / "work.db"
    fairway.open(file).close()
    assert _run(end, "status", file) == (0, "")
    assert _run(end, "put", file, "--host", "one") == (0, "")
    # A child of it writes to what is descriptor 1, whatever that is.
    assert _run(end, "work", file, "--until-empty", "sh -c 'cat; echo of the child'")[0] == 0
    with fairway.open(file) as q:
        assert [one.state for one in q.submissions()] == ["completed"]
