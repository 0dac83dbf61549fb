"""The set-up names what a machine lacks, with the cure, and what it installs is locked and complete."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# What tools/setup.sh needs from a machine, apart from a Python.
TOOLS = ("sh", "cat", "cut", "date", "dirname", "find", "grep", "mktemp", "rm", "sed", "tail", "touch")


class Machine:
    """A PATH of its own, with the Pythons a test puts on it, and a copy of the set-up in an empty tree."""

    def __init__(self, root: Path) -> None:
        self.root, self.path, self.tree = root, root / "bin", root / "tree"
        for folder in (self.path, self.tree / "tools", self.tree / "requirements", self.tree / "src"):
            folder.mkdir(parents=True)
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or "")
        for name in (
            "tools/setup.sh",
            "tools/probe_python.py",
            "requirements/uv.txt",
            "requirements/dev.txt",
        ):
            shutil.copy(ROOT / name, self.tree / name)
        self.environment = {"PATH": str(self.path), "HOME": str(root), "PIP_NO_INDEX": "1"}

    def put(self, name: str, script: str) -> Path:
        (self.path / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / name).chmod(0o755)
        return self.path / name

    def put_python(self, name: str, change: str = "") -> Path:
        """A real Python that tells the probe what `change` makes of it, and cannot make a venv."""
        code = f"import runpy, sys, sysconfig\n{change}\nrunpy.run_path(sys.argv[1], run_name='__main__')"
        (self.root / f"{name}.py").write_text(code)
        probe = f'exec "{sys.executable}" "{self.root / name}.py" "$@"'
        return self.put(name, f'[ "$1" != -m ] || {{ echo "no venv made here"; exit 3; }}\n{probe}')

    def seen_at_a_terminal(self) -> str:
        """What the set-up shows until it fails, where somebody watches."""
        ours, theirs = pty.openpty()
        command = [self.path / "sh", self.tree / "tools" / "setup.sh"]
        run = subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(ours, 4096):
                seen += piece
        os.close(ours)
        assert run.wait(60) == 1
        return seen.decode()

    def set_up(self, **environment: str) -> str:
        """Run the set-up, see it fail, and return what it said."""
        run = subprocess.run(
            [self.path / "sh", self.tree / "tools" / "setup.sh"],
            env=self.environment | environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert run.returncode == 1, run.stdout + run.stderr
        assert "Traceback" not in run.stderr
        assert not (self.tree / ".venv" / ".ready").exists()
        return run.stdout + run.stderr


OLD = "sys.version_info = (3, 8, 10)"
NO_VENV = "sys.version_info = (3, 12, 3)\nsys.modules['ensurepip'] = None"
NO_HEADERS = "real = sysconfig.get_paths\nsysconfig.get_paths = lambda *a: {**real(*a), 'include': 'nowhere'}"
HERE = ".".join(map(str, sys.version_info[:3]))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_no_python_at_all_is_named(machine: Machine) -> None:
    said = machine.set_up()
    assert "it needs Python 3.11 or newer, and there is none on PATH." in said
    assert "-> " in said
    assert "apt install python3" in said


def test_an_old_python_is_named_with_the_cure(machine: Machine) -> None:
    machine.put_python("python3", OLD)
    said = machine.set_up()
    assert "it needs Python 3.11 or newer, and python3 is 3.8.10." in said
    assert "make setup PYTHON=" in said


def test_a_missing_venv_module_is_named_with_the_cure(machine: Machine) -> None:
    machine.put_python("python3.12", NO_VENV)
    said = machine.set_up()
    assert "Python 3.12.3 has no working venv module." in said
    assert "apt install python3.12-venv" in said


def test_a_python_that_does_not_run_is_named(machine: Machine) -> None:
    machine.put("python3.13", "echo 'not installed' >&2; exit 127")
    assert "there is none on PATH that runs (python3.13 does not)." in machine.set_up()


def test_a_worse_python_does_not_hide_a_good_one(machine: Machine) -> None:
    machine.put("python3.14", "echo 'not installed' >&2; exit 127")
    machine.put_python("python3.13", NO_VENV)
    machine.put_python("python3.11")
    machine.put_python("python3", OLD)
    machine.put("cc", "exit 0")
    said = machine.set_up()
    assert "(python3.11)" in said
    assert "no venv made here" in said
    assert "the step 'venv' failed" in said


def test_the_named_python_is_the_one_that_counts(machine: Machine) -> None:
    machine.put_python("python3.11")
    old = machine.put_python("ancient", OLD)
    assert "is 3.8.10" in machine.set_up(PYTHON=str(old))
    assert "PYTHON=/no/such/python does not run." in machine.set_up(PYTHON="/no/such/python")


def test_a_missing_compiler_is_only_a_note_while_nothing_needs_it(machine: Machine) -> None:
    machine.put_python("python3.11")
    said = machine.set_up()
    assert "no sign of a C compiler; needed only where a package has no wheel" in said
    assert "the step 'venv' failed, and this machine lacks a C compiler." in said


def test_a_missing_compiler_leaves_the_ring_out_and_says_so(machine: Machine) -> None:
    machine.put_python("python3.11")
    (machine.tree / "src" / "ring.c").touch()
    said = machine.set_up()
    assert "fairway.Ring is left out without it -> " in said
    assert "apt install build-essential" in said
    assert "the step 'venv' failed" in said  # so it went on


def test_missing_headers_are_named_with_the_cure(machine: Machine) -> None:
    machine.put_python("python3.11", NO_HEADERS)
    machine.put("cc", "exit 0")
    (machine.tree / "src" / "ring.c").touch()
    said = machine.set_up()
    assert f"no sign of the C headers of Python {HERE};" in said
    assert f"this machine lacks the C headers of Python {HERE}." in said
    assert f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev" in said


# -- what is installed -------------------------------------------------------------------------------------


def test_a_terminal_shows_the_step_that_is_under_way(machine: Machine) -> None:
    machine.put_python("python3.12")
    assert "  venv      ...\r\n" in machine.seen_at_a_terminal()
    assert "..." not in machine.set_up()  # a file gets outcomes alone


def names_in(text: str) -> set[str]:
    return {re.split(r"[<>=\[ ;]", line)[0] for line in text.splitlines() if re.match(r"[a-z]", line)}


@pytest.mark.parametrize("name", ["uv", "run", "dev", "java", "bench"])
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", "\n" + text)[1:]
    assert entries
    assert [
        entry for entry in entries if not re.match(r"[\w.-]+==\S+", entry) or "--hash=sha256:" not in entry
    ] == []


def test_the_locked_files_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run = names_in("\n".join(project["project"]["dependencies"]))
    extras = names_in(
        "\n".join("\n".join(extra) for extra in project["project"]["optional-dependencies"].values())
    ) - {"fairway"}  # an extra may stand on another
    tools = names_in((ROOT / "requirements" / "dev.in").read_text(encoding="utf-8"))
    build = names_in("\n".join(project["build-system"]["requires"]))
    locked_run = names_in((ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"))
    locked_dev = names_in((ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"))
    assert run <= locked_run <= locked_dev
    assert extras | tools | build <= locked_dev
    assert not extras & locked_run, "the bare install is small"


def wheel_of(tmp_path: Path, **environment: str) -> tuple[Path, Path, str]:
    """A copy of the tree, the wheel that is built of it, and what was said."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "pyproject.toml", ROOT / "hatch_build.py"):
        shutil.copy(path, tree)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "src" / "fairway" / "planted.sql").write_text("-- not Python\n")
    command = [BIN / "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"]
    env = os.environ | environment
    run = subprocess.run(command, cwd=tree, env=env, check=True, capture_output=True, text=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    return tree, wheel, run.stdout + run.stderr


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    tree, wheel, _ = wheel_of(tmp_path)
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        path.relative_to(tree / "src").as_posix() for path in tree.glob("src/fairway/**/*") if path.is_file()
    }
    assert {"fairway/py.typed", "fairway/planted.sql"} <= wanted <= packed


def test_without_a_compiler_the_wheel_is_built_and_the_ring_says_what_to_do(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    _, wheel, said = wheel_of(tmp_path, CC="", PATH=str(empty))
    assert "without its ring: there is no C compiler" in said
    assert wheel.name.endswith("py3-none-any.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = (
        "import fairway\n"
        "with fairway.open(':memory:') as q: q.put(b'x')\n"
        "for way in (fairway.Ring.create, fairway.Ring.attach):\n"
        "    try: way('nowhere')\n"
        "    except fairway.RingMissing as error: print(error.code, error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stdout.count("ring_missing") == 2, run.stderr
    assert "install a C compiler" in run.stdout


# -- the Makefile ------------------------------------------------------------------------------------------


def make(tree: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-C", str(tree), "--no-print-directory", *arguments]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60)
    return run.stdout


def test_make_alone_shows_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    shown = re.findall(r"^  make (\w+) +\S", make(ROOT), re.MULTILINE)
    assert sorted(shown) == sorted(phony[1].split())


def test_the_list_of_targets_fits_a_terminal() -> None:
    assert [line for line in make(ROOT).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("target", ["demo", "test", "check", "coverage", "proof", "bench", "lock"])
def test_every_target_sets_up_first_and_only_when_something_changed(target: str, tmp_path: Path) -> None:
    inputs = (
        "pyproject.toml",
        *(f"requirements/{name}.txt" for name in ("uv", "dev", "java")),
        "tools/setup.sh",
    )
    for name in ("Makefile", "tools/probe_python.py", *inputs):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert "tools/setup.sh" in make(tmp_path, "--dry-run", target)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".ready").touch()
    assert "tools/setup.sh" not in make(tmp_path, "--dry-run", target)
    for name in inputs:
        assert "tools/setup.sh" in make(tmp_path, "--dry-run", f"--what-if={name}", target)
