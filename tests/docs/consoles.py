"""Pages as programs: their blocks in order, in one folder, by one shell.

Guards: what a page says a command prints is what it printed; only what is another one every time is overlooked. A
command of which the page shows no output succeeds.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Block, every_block
from tests.programs import need_program

CODE, END = "\x1d", "\x1e"  # after every step: its exit code between these
# Nothing that a page starts outlives it, also where it stops half-way. An answer of HTTP that is an error is one here.
OPENING = (
    "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\ncurl() { command curl --fail-with-body \"$@\"; }\n"
)
PORT = "7420"  # where a server on a page listens; here it is a free one
PLACES = {"/var/lib/fairway/": "", "/backup/": "backup/"}  # folders of a page, and where they are here
# What is another one every time: ids, receipts, dates, ages, sizes; and how wide a column is because of them.
VARIES = (
    (r"\b\d{18,19}\b", "ID"),
    (r"\b[0-9a-f]+(?:\.[0-9a-f]+){4}\b", "RECEIPT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE"),
    (r"\b\d+(?:\.\d+)?[smhd](?: \d+[smh])?\b", "AGE"),
    (r"\b\d+ s from now", "AGE from now"),
    (r"\b\d{10}\.\d+\b", "TIME"),
    (r"\b[0-9a-f]{12}\b", "TOKEN"),
    (r"\bfw_[\w-]+", "SECRET"),
    (r"[\d.,]+ KiB", "SIZE"),
    (r"─+", ""),
    (r"\s+", " "),
)
NAMED = re.compile(r"# (\w+\.\w+)\n")  # a block that opens with the name of a file is that file


@dataclass(frozen=True)
class Step:
    """Something that a page does, and the lines it prints; None: the page does not say, and it succeeds."""

    line: int
    command: str
    says: list[str] | None


def alike(line: str) -> str:
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()


def steps(page: Path) -> list[Step]:
    found: list[Step] = []
    program = False  # was the last block a program? Then a block of text is what it prints
    for block in every_block(page):
        named = NAMED.match(block.text)
        if block.language == "text" and program:
            found[-1] = Step(found[-1].line, found[-1].command, block.text.splitlines())
        program = block.language == "python" and not named and "fairway.spark" not in block.text
        if program:
            found.append(
                Step(block.line, f"python -W error - <<'FAIRWAY_END'\n{block.text}FAIRWAY_END", None)
            )
        elif named:
            found.append(Step(block.line, f"cat > {named[1]} <<'FAIRWAY_END'\n{block.text}FAIRWAY_END", []))
        elif block.language == "console":
            found += _commands(block)
    return found


def _commands(block: Block) -> list[Step]:
    found: list[Step] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Step(number, line[2:], []))
        elif found[-1].command.endswith("\\"):
            found[-1] = Step(found[-1].line, f"{found[-1].command[:-1]}{line[2:]}", [])
        else:
            found[-1].says.append(line)  # pyright: ignore[reportOptionalMemberAccess]
    return found


def plain_steps(page: Path) -> list[Step]:
    """The lines of its `sh` blocks, without those that say why they are not run."""
    found: list[Step] = []
    for block in every_block(page):
        if block.language == "sh" and not block.not_run:
            lines = enumerate(block.text.replace("\\\n", " ").splitlines(), block.line)
            found += [Step(number, line, None) for number, line in lines if line.strip()]
    return found


def run(page: Path, folder: Path, told: list[Step]) -> None:
    """Run steps of a page; AssertionError names the line that failed, or whose output is another."""
    if any("curl" in step.command for step in told):
        need_program("curl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = OPENING + "".join(f"{step.command}\nprintf '\\035%d\\036' $?\n" for step in told)
    for there, here in PLACES.items():
        script = script.replace(there, here)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAIRWAY_")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{environment['PATH']}", "COLUMNS": "110"}
    ran = subprocess.run(
        ["bash", "-c", script.replace(PORT, port)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    outputs = ran.stdout.replace(port, PORT).split(END)
    assert len(outputs) == len(told) + 1, ran.stdout
    for step, answer in zip(told, outputs, strict=False):
        output, _, code = answer.rpartition(CODE)
        printed = [alike(line) for line in output.splitlines()]
        where = f"{page.name}:{step.line}: {step.command}"
        if step.says is None:
            assert code == "0", f"{where}\nexit code {code}\n{output}"
        else:
            assert printed == [alike(line) for line in step.says], f"{where}\n{output}"
