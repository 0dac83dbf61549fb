"""Payload and result objects through obstore: file://, s3:// and what else it reads; memory:// for tests.

Guards: an upload never replaces an object, and removes only what it made itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fairway.errors import BadArgument, FairwayError, ObjectMissing, OurError
from fairway.face.checks import refuse

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_THREADS = 8  # requests at a time; more help little against one bucket
_AHEAD = 2 * _THREADS  # payloads taken from the iterable before the first of them is written
_REMOVED_AT_ONCE = 1000  # what one request of an object store may name

_stores: dict[str, ObjectStore] = {}
_stores_lock = threading.Lock()
_loading = threading.Lock()


class Upload:
    """Payloads that were uploaded under a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.count = 0
        self._made: list[int] = []

    @property
    def made(self) -> list[str]:
        return [f"{self._prefix}/{index}" for index in sorted(self._made)]

    def add(self, index: int, created: bool) -> None:
        if created:
            self._made.append(index)


class ObstoreObjects:
    """`fairway.face.objects.Objects` over obstore. Any thread may call it."""

    def read(self, name: str) -> bytes:
        return read(name)

    def write(self, blobs: Mapping[str, bytes]) -> None:
        with _Window() as window:
            for name, blob in blobs.items():
                window.submit(lambda name=name, blob=blob: _put(name, blob))

    def upload(self, prefix: str, payloads: Iterable[bytes]) -> Upload:
        upload = Upload(prefix)
        try:
            with _Window() as window:
                for payload in payloads:
                    if not isinstance(payload, bytes | bytearray | memoryview):
                        refuse(f"payloads[{upload.count}]", "bytes", payload)
                    window.submit(
                        lambda i=upload.count, data=payload: upload.add(i, _create(f"{prefix}/{i}", data))
                    )
                    upload.count += 1
        except BaseException:
            self.remove(upload.made)
            raise
        return upload

    def remove(self, names: Iterable[str]) -> None:
        for store, paths in _by_store(names):
            _translated(lambda store=store, paths=paths: store.delete(paths), paths[0], missing_ok=True)


def read(name: str) -> bytes:
    """An object's bytes, or ObjectMissing. A plain function, so that a lease that holds it can be pickled."""
    store, path = _locate(name)
    return _translated(lambda: bytes(store.get(path).bytes()), name)


def _put(name: str, blob: bytes) -> None:
    store, path = _locate(name)
    _translated(lambda: store.put(path, blob), name)


def _create(name: str, blob: bytes | bytearray | memoryview) -> bool:
    """Write an object that is not there; one that is must be the same (a repeated upload). True if it was made."""
    store, path = _locate(name)
    known = _obstore().exceptions
    try:
        store.put(path, bytes(blob), mode="create")
        return True
    except known.AlreadyExistsError:
        if read(name) != bytes(blob):
            raise BadArgument(
                f"objects: {name} is there already with other content; choose a prefix of its own",
                argument="objects",
            ) from None
        return False
    except known.NotSupportedError:
        _put(name, bytes(blob))
        return False  # it may have been there before, so it is not ours to remove
    except Exception as error:
        raise _error(name, error) from error


def under(prefix: str) -> Iterator[list[str]]:
    """The names of all objects under a prefix, some at a time, each relative to it."""
    store, path = _locate(prefix)
    pages = iter(_translated(lambda: store.list(prefix=path), prefix))
    while some := _translated(lambda: next(pages, None), prefix):
        yield [_below(path, str(meta["path"])) for meta in some]


def ages(prefix: str) -> Iterator[tuple[str, float]]:
    """The names of all objects under a prefix, relative to it, with the time each was written."""
    store, path = _locate(prefix)
    pages = iter(_translated(lambda: store.list(prefix=path), prefix))
    while some := _translated(lambda: next(pages, None), prefix):
        for meta in some:
            yield _below(path, str(meta["path"])), meta["last_modified"].timestamp()


def _below(path: str, name: str) -> str:
    """The name of an object relative to a path; that of a whole bucket is empty."""
    return name[len(path) + 1 :] if path else name


def _locate(name: str) -> tuple[ObjectStore, str]:
    """The store of a URL, made once per bucket, and the path inside it."""
    parts = urlsplit(name)
    root = f"{parts.scheme}://{parts.netloc}"
    store = _stores.get(root)
    if store is None:
        with _stores_lock:
            store = _stores.get(root) or _stores.setdefault(root, _open(root, parts.scheme))
    path = unquote(parts.path) if parts.scheme == "file" else parts.path
    if parts.scheme == "memory":
        path = parts.netloc + path
    return store, path.strip("/")


def _obstore() -> Any:
    """The library, loaded when it is first needed, by one thread: its modules import each other in a circle."""
    with _loading:
        import obstore.exceptions
        import obstore.store

        return obstore


def _open(root: str, scheme: str) -> Any:
    stores = _obstore().store
    if scheme == "memory":
        for known, store in _stores.items():
            if known.startswith("memory:"):
                return store
        return stores.MemoryStore()
    if scheme == "file":
        return stores.LocalStore()
    try:
        return stores.from_url(root)
    except Exception as error:
        raise BadArgument(
            f"objects: {root} cannot be used: {str(error).splitlines()[0]}", argument="objects"
        ) from error


def _by_store(names: Iterable[str]) -> Iterator[tuple[Any, list[str]]]:
    found: dict[int, tuple[Any, list[str]]] = {}
    for name in names:
        store, path = _locate(name)
        paths = found.setdefault(id(store), (store, []))[1]
        paths.append(path)
        if len(paths) == _REMOVED_AT_ONCE:
            yield found.pop(id(store))
    yield from found.values()


def _translated(function: Callable[[], Any], name: str, missing_ok: bool = False) -> Any:
    try:
        return function()
    except FileNotFoundError as error:
        if not missing_ok:
            raise _error(name, error) from error
    except Exception as error:
        raise _error(name, error) from error


def _error(name: str, error: Exception) -> FairwayError:
    if isinstance(error, FairwayError):
        return error
    if isinstance(error, FileNotFoundError):
        return ObjectMissing(
            f"the object {name} is not there; put it back, or cancel the submission", object=name
        )
    first = (str(error).splitlines() or [repr(error)])[0]
    return OurError(f"the object {name} cannot be reached: {first}", object=name)


class _Window:
    """A few requests at a time; leaving it waits for all, and raises the first error."""

    def __enter__(self) -> _Window:
        self._pool = ThreadPoolExecutor(_THREADS, "fairway objects")
        self._running: deque[Future[None]] = deque()
        return self

    def submit(self, function: Callable[[], None]) -> None:
        if len(self._running) >= _AHEAD:
            self._running.popleft().result()
        self._running.append(self._pool.submit(function))

    def __exit__(self, kind: object, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        if kind is None:
            for future in self._running:
                future.result()
