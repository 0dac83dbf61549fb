"""The tree keeps the house style, and every check of it fails when it is shown something bad."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from tools import tidy

TESTS = Path(__file__).parent
BIN = Path(sys.executable).parent
GOOD = '"""One idea."""\n'
LONG_FUNCTION = "def f() -> None:\n" + "    f()\n" * tidy.FUNCTION_LINES_MAX


def relative(path: Path) -> str:
    return path.relative_to(tidy.ROOT).as_posix()


@pytest.mark.parametrize("check", tidy.MODULE_CHECKS, ids=lambda check: check.__name__)
def test_every_module_keeps_the_style(check: tidy.Check) -> None:
    found = [f"{relative(path)}: {problem}" for path in tidy.modules() for problem in check(path)]
    assert tidy.modules()
    assert found == []


def test_nothing_in_the_source_is_unfinished() -> None:
    files = tidy.sources()
    assert [
        f"{relative(path)}: {problem}" for path in files for problem in tidy.nothing_is_unfinished(path)
    ] == []


def test_no_file_names_a_registry_or_a_machine() -> None:
    files = tidy.project_files()
    assert tidy.ROOT / "pyproject.toml" in files
    assert [
        f"{relative(path)}: {problem}" for path in files for problem in tidy.machine_is_not_named(path)
    ] == []


def test_every_limit_has_its_unit_and_its_reason() -> None:
    assert list(tidy.limits_have_unit_and_reason(tidy.PACKAGE / "limits.py")) == []


def test_every_public_name_is_listed() -> None:
    assert list(tidy.face_is_complete(tidy.PACKAGE / "__init__.py")) == []


def test_the_budgets_of_all_areas_fit_in_the_whole() -> None:
    budgets = tomllib.loads((TESTS / "budgets.toml").read_text(encoding="utf-8"))
    assert budgets["whole_seconds"] <= 1800
    assert sum(budgets["areas"].values()) <= 2 * budgets["whole_seconds"], "two tests run at a time"


def test_the_whole_run_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    package = tmp_path / "src" / "fairway"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(GOOD)
    (package / "limits.py").write_text(GOOD)
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    monkeypatch.setattr(tidy, "PACKAGE", package)
    monkeypatch.setattr(tidy, "project_files", list)
    assert tidy.main() == 0
    (package / "limits.py").write_text("N = 1\n")
    assert tidy.main() == 1
    said = capsys.readouterr().out
    assert "src/fairway/limits.py: has no docstring" in said
    assert "src/fairway/limits.py: line 1: N does not end with its unit" in said
    assert "House style: 2 modules, 3 problems." in said


BAD = [
    (tidy.module_fits, "engine/long.py", GOOD + "x = 1\n" * tidy.MODULE_LINES_MAX),
    (tidy.functions_fit, "engine/long.py", LONG_FUNCTION),
    (tidy.functions_fit, "engine/long.py", "async " + LONG_FUNCTION),
    (tidy.functions_fit, "engine/long.py", "class A:\n" + textwrap.indent(LONG_FUNCTION, "    ")),
    (tidy.name_has_an_idea, "engine/utils.py", GOOD),
    (tidy.name_has_an_idea, "engine/_helpers.py", GOOD),
    (tidy.name_has_an_idea, "store/sqlite_utils.py", GOOD),
    (tidy.name_has_an_idea, "common/place.py", GOOD),
    (tidy.name_has_an_idea, "store/base/__init__.py", GOOD),
    (tidy.docstring_opens_with_a_sentence, "engine/bare.py", "x = 1\n"),
    (tidy.docstring_opens_with_a_sentence, "engine/open.py", '"""The life of\na chunk."""\n'),
    (tidy.docstring_opens_with_a_sentence, "engine/two.py", '"""A table. Also a clock."""\n'),
    *((tidy.core_is_pure, f"{package}/x.py", "import time\n") for package in sorted(tidy.PURE)),
    *((tidy.core_is_pure, "engine/x.py", f"import {module}\n") for module in sorted(tidy.IMPURE)),
    (tidy.core_is_pure, "engine/__init__.py", "from os.path import join\n"),
    (tidy.core_is_pure, "engine/deep/x.py", "def f():\n    import random\n"),
    (tidy.core_is_pure, "engine/x.py", "import datetime\nt = datetime.datetime.now()\n"),
    (tidy.core_is_pure, "engine/x.py", "from datetime import date\nt = date.today()\n"),
    (tidy.core_is_pure, "engine/x.py", "data = open('x').read()\n"),
    (tidy.core_is_pure, "engine/x.py", "s = 'COMMIT'\n"),
    (tidy.core_is_pure, "engine/x.py", "s = 'PRAGMA user_version'\n"),
    (tidy.only_the_face_prints, "engine/x.py", "print('here')\n"),
    (tidy.only_the_face_prints, "client.py", "def f():\n    print('here')\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'SELECT 1'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'INSERT INTO runs VALUES (?)'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'insert or ignore into runs values (?)'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = f'DELETE FROM {t}'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = '''\n    select id\n    from runs'''\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'UPDATE runs SET a = 1'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'create unique index i on t (a)'\n"),
    (tidy.sql_lives_in_files, "store/x.py", "s = query + ' WHERE id = ?'\n"),
    (tidy.names_are_public_in_one_place, "engine/__init__.py", "__all__ = ['x']\n"),
    (tidy.names_are_public_in_one_place, "client.py", "__all__: list[str] = []\n"),
    (tidy.nothing_is_unfinished, "store/x.sql", "-- TO" + "DO: an index\n"),
    (tidy.nothing_is_unfinished, "store/x.py", "raise NotImplemented" + "Error\n"),
    (tidy.machine_is_not_named, "x.md", "see /" + "work/notes\n"),
    (tidy.machine_is_not_named, "x.md", "run `/" + "root/bin/x`\n"),
    (tidy.machine_is_not_named, "x.md", "file:///" + "home/me/x.db\n"),
    (tidy.machine_is_not_named, "x.txt", "--index-url" + " https://mirror.example/simple\n"),
    (tidy.machine_is_not_named, "x.txt", "https://files.python" + "hosted.org/x.whl\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "ROWS_MAX = 5\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "ROWS_MAX: Final = 5\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "A_MAX = 5  # why\nB_MAX = 5\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "# -- a heading\nROWS_MAX = 5\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "LEASE = 60  # a minute\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "SECONDS_LEASE = 2 * 30  # a minute\n"),
    (tidy.limits_have_unit_and_reason, "limits.py", "class Limits:\n    window: int = 5  # why\n"),
    (tidy.face_is_complete, "__init__.py", "from fairway.errors import FairwayError\n"),
    (tidy.face_is_complete, "__init__.py", "__all__ = []\ndef open(): ...\n"),
    (tidy.face_is_complete, "__init__.py", "__all__ = ['open', 'open']\ndef open(): ...\n"),
]

FINE = [
    (tidy.module_fits, "engine/long.py", GOOD + "x = 1\n" * (tidy.MODULE_LINES_MAX - 1)),
    (tidy.functions_fit, "engine/long.py", LONG_FUNCTION.removesuffix("    f()\n")),
    (tidy.name_has_an_idea, "strategy/base_order.py", GOOD),
    (
        tidy.docstring_opens_with_a_sentence,
        "engine/x.py",
        '"""A table (see 1.5).\n\nGuards: order. Always."""\n',
    ),
    (tidy.core_is_pure, "engine/x.py", "import datetime\nt = datetime.timedelta(1)\nq.now(5)\n"),
    (tidy.core_is_pure, "engine/x.py", "from .time import place\nfrom fairway.engine.queue import q\n"),
    (tidy.core_is_pure, "runtime/x.py", "import time, threading, os\n"),
    (tidy.only_the_face_prints, "cli/x.py", "print('here')\n"),
    (tidy.only_the_face_prints, "testing/x.py", "print('here')\n"),
    (
        tidy.sql_lives_in_files,
        "store/x.py",
        "s = 'PRAGMA synchronous = FULL'\nt = 'BEGIN IMMEDIATE'\nu = 'COMMIT'\n",
    ),
    (tidy.sql_lives_in_files, "store/x.py", '"""Runs a SELECT on each table."""\n'),
    (tidy.sql_lives_in_files, "store/x.py", "s = 'select one of these, or update to a newer version'\n"),
    (tidy.names_are_public_in_one_place, "testing/__init__.py", "__all__ = ['x']\n"),
    (tidy.names_are_public_in_one_place, "__init__.py", "__all__ = ['x']\n"),
    (tidy.machine_is_not_named, "x.md", "GET /v1/queues/{queue}/work/ and docs/home/x, ./work/x\n"),
    (
        tidy.limits_have_unit_and_reason,
        "limits.py",
        "# -- rows\n# why\nROWS_MAX = 5\nPAGE_CHUNKS = 2**16  # why\n",
    ),
    (tidy.limits_have_unit_and_reason, "limits.py", "NAME = re.compile('x')  # why\n"),
    (tidy.face_is_complete, "__init__.py", "from fairway.a import _b, c\n__all__ = ['c']\n"),
]


def case_name(value: object) -> str:
    return value.__name__ if callable(value) else str(value)[:40]


def place(root: Path, name: str, text: str) -> Path:
    path = root / "fairway" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("check", "name", "text"), BAD, ids=case_name)
def test_the_check_finds_what_is_bad(check: tidy.Check, name: str, text: str, tmp_path: Path) -> None:
    assert len(list(check(place(tmp_path, name, text)))) == 1


@pytest.mark.parametrize(("check", "name", "text"), FINE, ids=case_name)
def test_the_check_leaves_alone_what_is_fine(check: tidy.Check, name: str, text: str, tmp_path: Path) -> None:
    assert list(check(place(tmp_path, name, text))) == []


def test_every_check_is_shown_something_bad_and_something_fine() -> None:
    everywhere = {tidy.limits_have_unit_and_reason, tidy.face_is_complete, tidy.machine_is_not_named}
    assert {check for check, _, _ in BAD} == {*tidy.MODULE_CHECKS, *everywhere, tidy.nothing_is_unfinished}
    assert {check for check, _, _ in FINE} >= {*tidy.MODULE_CHECKS, *everywhere}


def test_project_files_are_what_git_would_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".gitignore", "seen.md", "work.db", ".venv/bin/python", ".ruff_cache/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("*.db\n.*/\n")
    without_git = {".gitignore", "seen.md", "work.db"}
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        assert {path.name for path in tidy.project_files(tmp_path)} == without_git
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        assert {path.name for path in tidy.project_files(tmp_path)} == without_git - {"work.db"}


# -- the contracts of pyproject.toml -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "text", "broken"),
    [
        ("model/up.py", "import fairway.engine\n", "imports point downwards"),
        ("fair/side.py", "import fairway.strategy\n", "imports point downwards"),
        ("engine/store.py", "import obstore\n", "the core is pure"),
        ("sideways/__init__.py", "", "imports point downwards"),
    ],
)
def test_the_import_contracts_can_break(module: str, text: str, broken: str, tmp_path: Path) -> None:
    for package in ("model", "fair", "strategy", "engine", "runtime"):
        place(tmp_path, f"{package}/__init__.py", "")
    (tmp_path / "fairway" / "__init__.py").touch()
    assert lint_imports(tmp_path).returncode == 0
    path = tmp_path / "fairway" / module
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert f"{broken} BROKEN" in result.stdout


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [BIN / "lint-imports", "--no-cache", "--no-logo", "--config", tidy.ROOT / "pyproject.toml"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60)
