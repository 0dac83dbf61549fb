"""Pages that show commands are run, in order, by a shell; so are blocks of `sh`, or they say why not."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclopts import CycloptsError

import fairway
from fairway.cli import commands
from fairway.cli.app import app
from fairway.cli.arguments import placed
from fairway.cli.commands import COMMANDS, QUEUE_COMMANDS
from tests.docs.consoles import Step, alike, plain_steps, run, steps
from tests.docs.pages import PAGES, ROOT, blocks, every_block

WITH_COMMANDS = [page for page in PAGES if blocks(page, "console")]
PLAIN = [page for page in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md") if blocks(page, "sh")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.real
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_every_command_of_a_page_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    told = steps(page)
    assert told
    run(page, tmp_path, told)


def test_the_page_of_the_command_line_tells_of_every_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for one in (*COMMANDS, *QUEUE_COMMANDS):
        assert re.search(rf"\b{one.name}\b", text), f"docs/cli.md says nothing of {one.name}"
    for command in app:
        assert command.startswith("-") or f"`{command}" in text or f"fairway {command}" in text, command
    assert "(reference/cli.md)" in text
    assert len(steps(ROOT / "docs" / "cli.md")) > 25


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ID 910037426104172544 5.7s", "ID 910037426104172999  1m 3s", True),
        ("3 done, 0 failed", "3 done, 1 failed", False),
        ("backed up: 76.0 KiB", "backed up: 1,072.0 KiB", True),
        ("whale  0.5", "whale 5", False),
    ],
)
def test_only_what_varies_is_overlooked(one: str, other: str, same: bool) -> None:
    assert (alike(one) == alike(other)) is same


WRONG_PAGES = {
    r"page\.md:4: echo two": "```console\n$ echo one\none\n$ echo two\nthree\n```\n",
    r"python said\.py": "```python\n# said.py\nprint(1)\n```\n```console\n$ python said.py\nno\n```\n",
    r"python -W error": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    r"RuntimeError": "```python\nraise RuntimeError\n```\n",
}


def fails(why: str, text: str, told: Callable[[Path], list[Step]], folder: Path) -> None:
    """A page with this text does not run, for this reason."""
    page = folder / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=why):
        run(page, folder, told(page))


@pytest.mark.parametrize("why", WRONG_PAGES)
def test_a_page_that_tells_something_else_fails(why: str, tmp_path: Path) -> None:
    fails(why, WRONG_PAGES[why], steps, tmp_path)


PLAIN_RUN = [page for page in PLAIN if plain_steps(page)]


def at_work(folder: Path) -> None:
    """What a page takes for granted: a file with a queue that is in use, and a folder for backups."""
    (folder / "backup").mkdir()
    with fairway.open(folder / "work.db") as q:
        q.put_many([b"one", b"two", b"three"], tenant="acme")
        q.complete(q.reserve())
        q.fail(q.reserve(), "no", retry=False)


@pytest.mark.real
@pytest.mark.parametrize("page", PLAIN_RUN, ids=name)
def test_every_sh_block_that_can_be_run_succeeds(page: Path, tmp_path: Path) -> None:
    at_work(tmp_path)
    run(page, tmp_path, plain_steps(page))


def test_most_sh_blocks_outside_of_set_up_are_run() -> None:
    assert len(PLAIN_RUN) >= 5
    assert sum(len(plain_steps(page)) for page in PLAIN_RUN) >= 10


WRONG_BLOCKS = {
    r"page\.md:3: fairway status no\.db\nexit code 1": "```sh\ntrue\nfairway status no.db\n```\n",
    r"page\.md:3: curl .*\nexit code 22": "```sh\npython -m http.server --bind 127.0.0.1 7420 &\n"
    "curl -s --retry 9 --retry-connrefused http://127.0.0.1:7420/no-such\n```\n",
}


@pytest.mark.parametrize("why", WRONG_BLOCKS)
def test_a_sh_block_whose_command_fails_is_seen(why: str, tmp_path: Path) -> None:
    fails(why, WRONG_BLOCKS[why], plain_steps, tmp_path)


def test_a_sh_block_that_says_why_is_left_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: it ends the world -->\n```sh\nfalse\n```\n\n```sh\ntrue \\\n  yes\n```\n")
    assert [block.not_run for block in blocks(page, "sh")] == ["it ends the world", ""]
    assert [(step.line, step.command) for step in plain_steps(page)] == [(7, "true    yes")]


def understood(line: str) -> str:
    """What is wrong with a line of a `sh` block; nothing: it would be understood."""
    words = shlex.split(line.removesuffix("&"), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]  # a variable for this one command
    match words:
        case []:
            return ""
        case ["make", target, *_]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            return "" if re.search(rf"^{target}:", makefile, re.MULTILINE) else f"make has no {target}"
        case ["pip", "install", *what]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            named = [extra for part in what for extra in re.findall(r"\[(.*)\]", part)]
            return "" if set(",".join(named).split(",")) - {""} <= set(extras) else f"no extra {named}"
        case ["fairway", *rest]:
            return _parsed(rest)
        case ["python", "-m", module, *_]:
            return "" if (ROOT / f"{module.replace('.', '/')}").exists() else f"no {module}"
        case [program, *_] if program in (
            "curl",
            "docker",
            "openssl",
            "git",
            "mkdir",
            "cd",
            "python",
            ".",
            "source",
            "systemctl",
        ):
            return ""
        case _:
            return f"nobody checks {words[0]}"


def _parsed(rest: list[str]) -> str:
    try:
        chain, _, arguments = app.parse_commands(rest)
        app.parse_args(placed(commands.PLACED, chain, arguments, {}), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", PLAIN, ids=name)
def test_every_line_of_a_sh_block_is_understood(page: Path) -> None:
    for block in blocks(page, "sh"):
        for number, line in enumerate(block.text.replace("\\\n", " ").splitlines(), block.line):
            assert understood(line) == "", f"{name(page)}:{number}: {line}"


def test_the_unit_of_systemd_starts_what_is_understood() -> None:
    (unit,) = blocks(ROOT / "docs/howto/production.md", "ini")
    parsed = configparser.ConfigParser()
    parsed.read_string(unit.text)
    assert understood(parsed["Service"]["ExecStart"].removeprefix("/opt/fairway/bin/")) == ""


# What no program runs is held to something by a test of its own (tests/docs/test_docs.py, and the one above).
READ = {"ini", "json", "toml", "yaml"}


def test_every_block_is_run_or_read() -> None:
    for page in (*PAGES, *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING"))):
        for block in every_block(page):
            assert block.language in {"python", "console", "sh", "text"} | READ, f"{name(page)}:{block.line}"


WRONG = (
    "make nothing",
    "fairway submit --no-such x",
    "fairway nothing",
    "pip install 'fairway[x]'",
    "rm -r x",
)


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_is_wrong_is_seen(line: str) -> None:
    assert understood(line)


def spoken(page: Path) -> list[str]:
    """The commands in the sentences of a page; what stands for something else is left out."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"`(fairway [^`]+)`", text)
    return [line for line in found if "..." not in line and not re.search(r"\b[A-Z]+\b", line)]


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "reference"], ids=name)
def test_every_command_in_a_sentence_is_understood(page: Path) -> None:
    for line in spoken(page):
        wrong = understood(line)
        assert not wrong or "requires an argument" in wrong, f"{name(page)}: {line}: {wrong}"


def test_there_are_commands_in_sentences() -> None:
    assert sum(len(spoken(page)) for page in PAGES) > 30
