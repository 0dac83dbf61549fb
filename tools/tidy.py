"""The house style as checks: each takes a path and returns the sentences that say what is wrong with it.

Guards: the style that people agreed on is what the tree looks like. `python -m tools.tidy` runs every check;
tests/test_tidy.py does too, and shows each check something bad.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "fairway"

MODULE_LINES_MAX = 400  # beyond this a module is two ideas
FUNCTION_LINES_MAX = 60  # a function fits on a screen
NAMES_WITHOUT_AN_IDEA = {"util", "utils", "common", "helper", "helpers", "manager", "base", "misc"}
PURE = {"model", "fair", "strategy", "engine", "bucket"}
SPEAKS = {"cli", "testing"}  # the packages that may print
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "select", "selectors", "signal", "subprocess", "threading"),
    *("http", "socket", "ssl", "urllib"),
    *("glob", "os", "pathlib", "shutil", "tempfile"),
    *("random", "secrets", "time", "uuid", "importlib"),
    *("apsw", "cyclopts", "obstore", "rich", "sqlite3"),
}
IMPURE_CALLS = {"open", "input", "exec", "eval", "__import__"}
CLOCK_CALLS = {"now", "utcnow", "today"}
PUBLIC_PLACES = {"__init__.py", "aio.py"}  # relative to the package; what is in testing/ is public too

SQL_LOUD = re.compile(
    r"\bSELECT\s|\bINSERT\s+(OR\s+\w+\s+)?INTO\s|\bREPLACE\s+INTO\s|\bUPDATE\s+\S+\s+SET\s|\bDELETE\s+FROM\s"
    r"|\b(CREATE|DROP|ALTER)\s+(\w+\s+)?(TABLE|INDEX|VIEW|TRIGGER)\s|\bORDER\s+BY\s|\bVALUES\s*\(|\bWHERE\s"
)
SQL_QUIET = re.compile(
    r"\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s+\w+\s*(\(|values|select)|update\s+\w+\s+set\s+\w+\s*="
    r"|delete\s+from\s+\w+\s+where\s|(create|drop|alter)\s+(\w+\s+)?(table|index|view|trigger)\s)",
    re.IGNORECASE | re.DOTALL,
)
SQL_CONTROL = re.compile(r"\s*(PRAGMA\s|BEGIN\b|COMMIT\b|ROLLBACK\b|SAVEPOINT\s|VACUUM\b|ATTACH\s)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
QUALIFIERS = {"max", "min"}
UNITS = {"seconds", "millis", "bytes", "kib", "chars", "rows", "bits", "percent", "ratio", "version", "port"}
# Written so that this file does not contain what it looks for.
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|arti[f]actory|--(extra-)?index-url[ =]\S*:")
MACHINE_PATH = re.compile(r"(?<![\w.)}])/(work|root|home|Users)/")

Check = Callable[[Path], Iterator[str]]


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def below_fairway(path: Path) -> tuple[str, ...]:
    return path.parts[len(path.parts) - path.parts[::-1].index("fairway") :]


def package_of(path: Path) -> str:
    """The first folder under fairway/, or the empty string for a module that stands in none."""
    below = below_fairway(path)
    return below[0] if len(below) > 1 else ""


# -- one module --------------------------------------------------------------------------------------------


def module_fits(path: Path) -> Iterator[str]:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MODULE_LINES_MAX:
        yield f"{lines} lines, {MODULE_LINES_MAX} is the most: split it by idea"


def functions_fit(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"line {node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES_MAX} is the most"


def name_has_an_idea(path: Path) -> Iterator[str]:
    for name in (*below_fairway(path)[:-1], path.stem):
        # "base_order" is a word of the domain, "order_utils" is not.
        if name.strip("_").split("_")[-1] in NAMES_WITHOUT_AN_IDEA:
            yield f"the name '{name}' says no idea"


def docstring_opens_with_a_sentence(path: Path) -> Iterator[str]:
    docstring = ast.get_docstring(parse(path))
    if not docstring:
        yield "has no docstring"
        return
    first = docstring.splitlines()[0]
    if not first.endswith("."):
        yield f"the docstring's first line does not end a sentence: {first!r}"
    elif re.search(r"[.!?]\s+[A-Z]", first):
        yield f"the docstring's first line is more than one sentence: {first!r}"


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def core_is_pure(path: Path) -> Iterator[str]:
    if package_of(path) not in PURE:
        return
    tree = parse(path)
    for line, module in imports_of(tree):
        if module.split(".")[0] in IMPURE:
            yield f"line {line}: a pure package imports {module}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in IMPURE_CALLS:
            yield f"line {node.lineno}: a pure package calls {called}()"
        if called.split(".")[-1] in CLOCK_CALLS and "date" in called:
            yield f"line {node.lineno}: a pure package reads the clock: {called}()"
    for line, text in strings_of(tree):
        if SQL_CONTROL.match(text):
            yield f"line {line}: a pure package contains SQL: {text.strip()[:40]!r}"


def only_the_face_prints(path: Path) -> Iterator[str]:
    if package_of(path) in SPEAKS:
        return
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"line {node.lineno}: print() outside cli/ and testing/"


def strings_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string that is not a docstring; a docstring may speak of SQL."""
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken:
            yield node.lineno, node.value


def sql_lives_in_files(path: Path) -> Iterator[str]:
    for line, text in strings_of(parse(path)):
        if SQL_LOUD.search(text) or SQL_QUIET.match(text):
            yield f"line {line}: SQL in Python, move it to a .sql file: {text.strip()[:40]!r}"


def names_are_public_in_one_place(path: Path) -> Iterator[str]:
    if "/".join(below_fairway(path)) in PUBLIC_PLACES or package_of(path) == "testing":
        return
    for node in parse(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            yield f"line {node.lineno}: __all__ outside fairway/__init__.py"


MODULE_CHECKS: tuple[Check, ...] = (
    module_fits,
    functions_fit,
    name_has_an_idea,
    docstring_opens_with_a_sentence,
    core_is_pure,
    only_the_face_prints,
    sql_lives_in_files,
    names_are_public_in_one_place,
)


# -- one file of any kind ----------------------------------------------------------------------------------


def nothing_is_unfinished(path: Path) -> Iterator[str]:
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if found := UNFINISHED.search(line):
            yield f"line {number}: {found[0]}"


def machine_is_not_named(path: Path) -> Iterator[str]:
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if found := REGISTRY.search(line) or MACHINE_PATH.search(line):
            yield f"line {number}: names a registry or a path of one machine: {found[0]!r}"


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


# -- limits.py and __init__.py -----------------------------------------------------------------------------


def reasons_of(path: Path) -> Iterator[int]:
    """The lines that have a reason: on the line itself, or on a line of its own right above."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # A heading groups limits; it is not the reason for any of them.
        if token.type == tokenize.COMMENT and not token.string.startswith("# --"):
            alone = token.line.lstrip().startswith("#")
            yield token.start[0] + 1 if alone else token.start[0]


def ends_with_unit(name: str) -> bool:
    words = name.lower().split("_")
    if words[-1] in QUALIFIERS:
        return len(words) > 1
    # A plural is a count of what it names: PAGE_CHUNKS.
    return words[-1] in UNITS or words[-1].endswith("s")


def is_number(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) or is_number(right)
        case _:
            return False


def limits_have_unit_and_reason(path: Path) -> Iterator[str]:
    reasons = set(reasons_of(path))
    for node in ast.walk(parse(path)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        last = value.end_lineno or node.lineno
        if not reasons & set(range(node.lineno, last + 1)):
            yield f"line {node.lineno}: {name} does not say its reason in a comment"
        if is_number(value) and not ends_with_unit(name):
            yield f"line {node.lineno}: {name} does not end with its unit"


def face_is_complete(path: Path) -> Iterator[str]:
    """What fairway/__init__.py offers is what its __all__ says, and nothing twice."""
    listed: list[str] = []
    offered: set[str] = set()
    for node in parse(path).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as names):
                listed = [str(name.value) for name in names.elts if isinstance(name, ast.Constant)]
            case ast.Import() | ast.ImportFrom() if getattr(node, "module", "") != "__future__":
                offered |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                offered.add(name)
            case _:
                pass
    hidden = {name for name in offered if not name.startswith("_")} - set(listed)
    if hidden:
        yield f"not in __all__: {', '.join(sorted(hidden))}"
    twice = {name for name in listed if listed.count(name) > 1}
    if twice:
        yield f"twice in __all__: {', '.join(sorted(twice))}"


# -- the tree ----------------------------------------------------------------------------------------------


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def sources() -> list[Path]:
    made = {".pyc", ".so"}
    return sorted(path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in made)


def project_files(root: Path = ROOT) -> list[Path]:
    """What git tracks or would track; without git, what stands outside the folders that tools make."""
    listing = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, check=True, capture_output=True).stdout.decode().split("\0")
        files = [root / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        files = [
            path for path in root.rglob("*") if not any(map(made_by_tools, path.relative_to(root).parts))
        ]
    return [path for path in files if path.is_file()]


def made_by_tools(name: str) -> bool:
    return (
        name in {".git", ".venv", ".hypothesis", "build", "dist", "htmlcov", "__pycache__"}
        or "_cache" in name
    )


def problems() -> Iterator[str]:
    work: list[tuple[Check, list[Path]]] = [(check, modules()) for check in MODULE_CHECKS]
    work.append((nothing_is_unfinished, sources()))
    work.append((machine_is_not_named, project_files()))
    work.append((limits_have_unit_and_reason, [PACKAGE / "limits.py"]))
    work.append((face_is_complete, [PACKAGE / "__init__.py"]))
    for check, paths in work:
        for path in paths:
            yield from (f"{path.relative_to(ROOT)}: {problem}" for problem in check(path))


def main() -> int:
    found = list(problems())
    for problem in found:
        print(problem)
    print(f"House style: {len(modules())} modules, {len(found)} problems.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
