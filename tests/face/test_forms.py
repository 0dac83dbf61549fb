"""The blocking and the awaiting form: the same verbs, told alike."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import fairway
from fairway import AsyncQueue, Queue
from fairway.engine.commands import ListActive, Reserved, TenantView
from fairway.face.driving import drive_async, iterate_async
from fairway.face.verbs import Verbs
from fairway.model.submission import Described
from tests.face.script import Script, verbs

VERBS = sorted(name for name in dir(Verbs) if not name.startswith("_"))


@pytest.mark.parametrize("name", VERBS)
def test_both_forms_have_the_verb_with_its_arguments_and_docstring(name: str) -> None:
    blocking, awaiting, verb = (getattr(kind, name) for kind in (Queue, AsyncQueue, Verbs))
    one, two, told = (inspect.signature(form) for form in (blocking, awaiting, verb))
    assert one.parameters == two.parameters == told.parameters
    assert blocking.__doc__ == awaiting.__doc__ == verb.__doc__
    assert verb.__doc__
    assert (blocking.__qualname__, awaiting.__qualname__) == (f"Queue.{name}", f"AsyncQueue.{name}")
    listing = str(told.return_annotation).startswith("Listing[")
    assert inspect.iscoroutinefunction(awaiting) is not listing
    inner = told.return_annotation.partition("[")[2][:-1]
    assert one.return_annotation == (f"Iterator[{inner}]" if listing else inner)
    assert two.return_annotation == (f"AsyncIterator[{inner}]" if listing else inner)


def test_nothing_else_is_public() -> None:
    for kind, extra in ((Queue, {"close"}), (AsyncQueue, {"close"})):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public - extra == set(VERBS)


def test_public_names_are_there() -> None:
    for name in fairway.__all__:
        assert getattr(fairway, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fairway.nothing  # type: ignore[attr-defined]


class AsyncScript(Script):
    async def ask(self, command: object) -> object:
        return super().ask(command)

    async def do(self, function: object) -> object:
        return function()  # type: ignore[operator]


def test_an_awaiting_verb_gives_back_what_it_could_not_return() -> None:
    reserved = Reserved(3, 4, 6, 99.0, [(5, 0, 1, 1)], {5: Described("", 1, page_starts=(0,))})

    def broken(command: object) -> None:
        raise asyncio.CancelledError

    script = AsyncScript(Reserve=lambda command: reserved, ReadPages=broken)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(drive_async(verbs().reserve(), script))  # type: ignore[arg-type]
    assert script.given_back == [reserved]


def tenants(n: int) -> list[TenantView]:
    return [TenantView(f"{i:06}", 1.0, False, 0, 0, 0) for i in range(n)]


def test_listings_go_on_until_a_page_is_not_full() -> None:
    all_of_them = tenants(25_000)

    def page(command: object) -> list[TenantView]:
        after = command.after or ""  # type: ignore[attr-defined]
        return [view for view in all_of_them if view.name > after][: command.limit]  # type: ignore[attr-defined]

    script = Script(Tenants=page)
    assert script.all(verbs().tenants()) == all_of_them
    assert len(script.asked) == 3

    async def collect() -> list[TenantView]:
        return [view async for view in iterate_async(verbs().tenants(), AsyncScript(Tenants=page))]  # type: ignore[arg-type]

    assert asyncio.run(collect()) == all_of_them


def test_a_listing_that_fails_raises_where_it_is_iterated() -> None:
    def broken(command: object) -> None:
        raise fairway.Closed

    listing = Script(ListActive=broken)
    with pytest.raises(fairway.Closed):
        listing.all(verbs().submissions(state="active"))
    assert isinstance(listing.asked[0], ListActive)
