"""Client-side histories: what callers asked and were told, one JSON line per begin and per end of a call.

Guards: a history holds nothing that a caller, or the one who injects faults, could not see; the checker reads no more.

The first line is a Header, the others are Begin, End and Note in the order in which they happened. A Begin without an
End is a call whose answer nobody saw: it may have happened. Bytes are written as text, one character per byte.
What stands in `args` and `ok` of each operation is said in `fairway.testing.vocabulary`.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairway.errors import CallerError
from fairway.limits import PLAN_STEPS

FORMAT = 1
_XZ = b"\xfd7zXZ"  # how a packed file begins
UNKNOWN = (
    "group_unknown",
    "host_stuck",
    "no_host",
    "outcome_unknown",
)  # errors after which only the queue knows what became of a call


class BadHistory(CallerError):
    """The file is not a Fairway history; the message names the line. Give a file that `fairway sim` or a test wrote."""

    code = "bad_history"


class Header(msgspec.Struct, frozen=True, omit_defaults=True, tag="header", tag_field="is"):
    """The first line: the queue's configuration at the start, and where the history comes from."""

    format: int = FORMAT
    queue: str = "default"
    config: dict[str, Any] = {}
    drained: bool = False  # it promises to end in a drain: nothing may be left
    origin: dict[str, Any] = {}  # the seed and steps of a simulation
    window: int = 0  # rows of the owners' window, if the backlog may be longer: order is kept inside it only
    carries: bool = False  # the store deletes by range, so rows may be carried forward to other places
    plan_steps: int = PLAN_STEPS  # of a slice of a plan that is made: one of several slices takes a while


class Begin(msgspec.Struct, frozen=True, omit_defaults=True, tag="begin", tag_field="is"):
    """A call left its caller. Calls of one client with one number are tries of the same request."""

    t: float
    call: int
    who: str
    op: str
    args: dict[str, Any] = {}
    client: int = 0
    number: int = 0
    received: int = 0


class End(msgspec.Struct, frozen=True, omit_defaults=True, tag="end", tag_field="is"):
    """The caller saw the answer: `error` is the code of an error, or `ok` is the reply."""

    t: float
    call: int
    ok: Any = None
    error: str = ""


class Note(msgspec.Struct, frozen=True, omit_defaults=True, tag="note", tag_field="is"):
    """What was done to the system: start (with the owner's clock), crash, power_loss, drain, drained, ..."""

    t: float
    what: str
    args: dict[str, Any] = {}


Line = Header | Begin | End | Note
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def line_bytes(line: Line) -> bytes:
    """A line as it stands in the file, with its newline."""
    return _encode(line) + b"\n"


def text_of(data: bytes | None) -> str | None:
    """Bytes as they are written in a history."""
    return None if data is None else data.decode("latin-1")


class Try(msgspec.Struct):
    """One sending of a request: its lines by place, and what came back."""

    begin: int
    begin_t: float
    call: int
    received: int
    end: int = -1  # -1: no answer was seen
    end_t: float = 0.0
    ok: Any = None
    error: str = ""

    @property
    def answered(self) -> bool:
        return self.end >= 0 and not self.error


class Request(msgspec.Struct):
    """A call with all its tries. It had its effect at most once, between `begin` and `end`."""

    who: str
    op: str
    args: dict[str, Any]
    client: int
    number: int
    tries: list[Try]
    begin: int = 0
    end: int = -1  # the place of the first good answer; -1: there is none
    ok: Any = None
    refused: bool = False  # every try was answered, and every answer was an error: it surely had no effect
    hidden: bool = False  # it may have had an effect that no answer told of

    @property
    def answered(self) -> bool:
        return self.end >= 0

    @property
    def possible(self) -> bool:
        """Whether it may have had its effect."""
        return not self.refused

    @property
    def good(self) -> Try:
        """The try that brought the good answer; the last one if there is none."""
        return next((one for one in self.tries if one.end == self.end >= 0), self.tries[-1])

    @property
    def end_t(self) -> float:
        """When the good answer was seen; infinite if it never was."""
        return self.good.end_t if self.answered else float("inf")

    @property
    def begin_t(self) -> float:
        return self.tries[0].begin_t

    def lines(self) -> list[int]:
        """The places of its lines, for a story."""
        found: list[int] = []
        for t in self.tries:
            found += [t.begin] if t.end < 0 else [t.begin, t.end]
        return found


class History:
    """A history as read: its lines, and its calls gathered into requests in the order of their first begin."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines: list[Line] = list(lines)
        if not self.lines or not isinstance(self.lines[0], Header):
            raise BadHistory("line 1 is not a header; a history begins with one")
        self.header: Header = self.lines[0]
        if self.header.format != FORMAT:
            raise BadHistory(
                f"this history has format {self.header.format}; this Fairway reads format {FORMAT}"
            )
        self.notes: list[tuple[int, Note]] = []
        self.strays: list[int] = []  # ends without a begin, and second ends
        self.requests: list[Request] = list(self._gathered())
        self.memo: dict[str, Any] = {}  # what the checks derived, shared between them

    def _gathered(self) -> Iterator[Request]:
        by_number: dict[tuple[int, int], Request] = {}
        open_tries: dict[int, Try] = {}
        requests: list[Request] = []
        for place, line in enumerate(self.lines):
            if isinstance(line, Note):
                self.notes.append((place, line))
            elif isinstance(line, Begin):
                one = Try(place, line.t, line.call, line.received)
                open_tries[line.call] = one
                known = by_number.get((line.client, line.number)) if line.number else None
                if known is not None and known.op == line.op:
                    known.tries.append(one)
                    continue
                request = Request(line.who, line.op, line.args, line.client, line.number, [one], place)
                requests.append(request)
                if line.number:
                    by_number[line.client, line.number] = request
            elif isinstance(line, End):
                one = open_tries.pop(line.call, None)
                if one is None:
                    self.strays.append(place)
                else:
                    one.end, one.end_t, one.ok, one.error = place, line.t, line.ok, line.error
        for request in requests:
            _conclude(request)
        yield from requests

    def of(self, *ops: str) -> list[Request]:
        """The requests of some operations, in order."""
        by_op: dict[str, list[Request]] = self.memo.setdefault("by_op", {})
        if not by_op:
            for request in self.requests:
                by_op.setdefault(request.op, []).append(request)
        if len(ops) == 1:
            return by_op.get(ops[0], [])
        return sorted((r for op in ops for r in by_op.get(op, [])), key=lambda r: r.begin)


def _conclude(request: Request) -> None:
    """Say what is known of a request from its tries."""
    good = [one for one in request.tries if one.answered]
    if good:
        # An empty reserve had no effect and is not kept, so the same number may bring work later. A queue that is
        # broken may answer with something else altogether: then there is no work in it either.
        full = [one for one in good if request.op != "reserve" or one.ok.get("spans")]
        first = min(full or good, key=lambda one: one.end)
        request.end, request.ok = first.end, first.ok
        request.hidden = not full and any(one.end < 0 for one in request.tries)
    else:
        request.refused = all(one.end >= 0 and one.error not in UNKNOWN for one in request.tries)
        request.hidden = not request.refused


def parse(text: bytes) -> History:
    """A history from the bytes of a file."""
    lines: list[Line] = []
    for number, raw in enumerate(text.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            lines.append(_decode(raw))
        except msgspec.MsgspecError as error:
            raise BadHistory(f"line {number} is not a line of a history: {error}") from None
    return History(lines)


def load(path: Path) -> History:
    """A history from a file, which may be packed by xz."""
    try:
        text = path.read_bytes()
        return parse(lzma.decompress(text) if text.startswith(_XZ) else text)
    except BadHistory as error:
        raise BadHistory(f"{path}: {error}") from None
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from None
    except lzma.LZMAError as error:
        raise BadHistory(f"{path} cannot be unpacked: {error}; fetch it again") from None


def save(history: History, path: Path) -> None:
    """Write a history to a file; packed if its name ends with .xz."""
    text = b"".join(line_bytes(line) for line in history.lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text) if path.suffix == ".xz" else text)


class Recorder:
    """Writes a history in memory while it happens."""

    def __init__(self, header: Header) -> None:
        self.lines: list[Line] = [header]
        self._calls = 0

    def begin(
        self,
        t: float,
        who: str,
        op: str,
        args: dict[str, Any],
        client: int = 0,
        number: int = 0,
        received: int = 0,
    ) -> int:
        """A call begins; gives its call number."""
        self._calls += 1
        self.lines.append(Begin(t, self._calls, who, op, args, client, number, received))
        return self._calls

    def end(self, t: float, call: int, ok: object = None, error: str = "") -> None:
        self.lines.append(End(t, call, ok, error))

    def note(self, t: float, what: str, **args: object) -> None:
        self.lines.append(Note(t, what, args))

    def history(self) -> History:
        """What was recorded, read back as a file would be."""
        return parse(self.dump())

    def dump(self) -> bytes:
        return b"".join(line_bytes(line) for line in self.lines)
