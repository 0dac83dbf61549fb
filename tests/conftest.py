"""What every run of the tests reports: which tests were skipped and why, how long each area and the longest files took.

Guards: no test is left out in silence; a skip that tests/skips.toml does not list fails the run.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Generator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from time import monotonic

import pytest
from hypothesis import settings

from tests.ordering import Order, file_of, scheduler

HERE = Path(__file__).parent
TOLD = pytest.StashKey[list[tuple[str, dict]]]()  # what a long run showed
RAN = pytest.StashKey[pytest.TestReport]()  # how it ended, before its fixtures did
WHY_CHARACTERS = 160  # of an error, in the row of a run that failed
SLOW_SECONDS = 10.0  # a file that takes longer is named, so that tests/order.toml can be kept true

# Two busy cores are not a reason to fail. All else stays as Hypothesis has it, its CI profile included.
settings.register_profile("fairway", settings(deadline=None))
settings.load_profile("fairway")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budgets", action="store_true", help="print how long each area took, and its budget")


def pytest_configure(config: pytest.Config) -> None:
    # A worker of xdist sends its reports to the one process that counts.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Budgets(read("budgets.toml")), "fairway-budgets")
        config.pluginmanager.register(Skips(read("skips.toml").get("skip", [])), "fairway-skips")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and TOLD in item.stash and not report.skipped:
        item.stash[RAN] = report
    elif report.when == "teardown" and (ran := item.stash.get(RAN, None)) is not None:
        _leave_rows(item, ran, passed=ran.passed and report.passed)
    return report


def _leave_rows(item: pytest.Item, ran: pytest.TestReport, *, passed: bool) -> None:
    """Write what a long run told; one that failed leaves no earlier row standing, whatever it came to tell."""
    if item.get_closest_marker("proof") is None:
        return
    from tools.proof import write_failed, write_row  # the gates are tested in folders that have no tools

    told, seconds = item.stash[TOLD], round(ran.duration)
    for name, figures in told:
        write_row(name, seconds=seconds, passed=passed, test=item.nodeid, **figures)
    if not passed:
        crash = getattr(ran.longrepr, "reprcrash", None)
        why = str(crash.message).splitlines()[0][:WHY_CHARACTERS] if crash is not None else "it failed"
        names = frozenset(name for name, _ in told)
        write_failed(item.nodeid, why.replace("|", "/"), seconds=seconds, told=names)


@pytest.fixture
def record_proof(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Takes what a long run showed for docs/histories/rows: operations, faults, lost, seed. A short form writes none.

    The row is written when the test is over, and says whether it passed.
    """
    told = request.node.stash[TOLD] = []

    def record(name: str, **figures: object) -> None:
        told.append((name, figures))

    return record


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return (
        scheduler(config, log, Order(read("order.toml"))) if config.getvalue("dist") == "loadfile" else None
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    Order(read("order.toml")).sort(items)


def read(name: str) -> dict:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def matches(text: str, pattern: str) -> bool:
    # Test ids are full of brackets, so a bracket means itself.
    return fnmatchcase(text, pattern.replace("[", "[[]"))


class Skips:
    """Holds every skip against the list."""

    def __init__(self, listed: list[dict[str, str]]) -> None:
        for entry in listed:
            if not entry.get("test") or not entry.get("reason") or set(entry) != {"test", "reason"}:
                raise pytest.UsageError(f"tests/skips.toml: an entry has a test and a reason, not {entry}")
        self.listed = listed
        self.seen: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.note(report)

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            spoken = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            reason = getattr(report, "wasxfail", "") or spoken.removeprefix("Skipped: ")
            self.seen[report.nodeid] = reason

    def allowed(self, test: str) -> bool:
        return any(matches(test, e["test"]) and matches(self.seen[test], e["reason"]) for e in self.listed)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and not all(map(self.allowed, self.seen)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        unlisted = [test for test in self.seen if not self.allowed(test)]
        if self.seen or terminalreporter.config.option.budgets:
            terminalreporter.section("skips")
            write(f"skipped tests: {len(self.seen)}, not listed in tests/skips.toml: {len(unlisted)}")
        for test in unlisted:
            write(f"NOT LISTED {test}: {self.seen[test] or 'no reason given'}", red=True)


class Budgets:
    """Adds up the seconds of each area."""

    def __init__(self, budgets: dict) -> None:
        self.budgets = budgets
        self.started = monotonic()
        self.seconds: dict[str, float] = defaultdict(float)
        self.tests: dict[str, int] = defaultdict(int)
        self.files: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        area = area_of(report.nodeid)
        self.seconds[area] += report.duration
        self.files[file_of(report.nodeid)] += report.duration
        self.tests[area] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not terminalreporter.config.option.budgets:
            return
        terminalreporter.section("budgets")
        terminalreporter.write_line(f"{'area':<20}{'tests':>8}{'seconds':>10}{'budget':>9}")
        whole = ("whole, by the clock", sum(self.tests.values()), monotonic() - self.started)
        for area, tests, seconds in [
            *((a, self.tests[a], self.seconds[a]) for a in sorted(self.seconds)),
            whole,
        ]:
            budget = self.budget_of(area) if area != whole[0] else self.budgets["whole_seconds"]
            over = ("" if seconds <= budget else "  over") + (
                "" if seconds <= 2 * budget else ", WARNING: twice over"
            )
            line = f"{area:<20}{tests:>8}{seconds:>10.1f}{budget:>9}{over}"
            terminalreporter.write_line(line, yellow=bool(over), bold="WARNING" in over)
        terminalreporter.section("longest files")
        for file, seconds in sorted(self.files.items(), key=lambda one: -one[1]):
            if seconds >= SLOW_SECONDS:
                terminalreporter.write_line(f"{file:<60}{seconds:>8.1f}")

    def budget_of(self, area: str) -> float:
        return self.budgets["areas"].get(area, self.budgets["other_seconds"])


def area_of(test: str) -> str:
    below = PurePosixPath(test.split("::")[0]).parts[1:]
    return below[0].removesuffix(".py") if below else test
