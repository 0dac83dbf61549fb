"""Logging in with a token, in a real browser: what is seen, what is hidden, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

import fairway
from tests.browser.visitor import Visitor, soon
from tests.server.live import Live, live

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("login"), queues=["orders", "secret-plans"]) as found:
        with fairway.open(found.url, "orders") as q:
            q.submit(chunks=20, tenant="acme")
        found.token("read")  # from the first token on, everybody needs one
        yield found


def login(visitor: Visitor, server: Live, token: str) -> Page:
    page = visitor.go(server.url)
    soon(page.get_by_role("heading", name="Log in to Fairway")).to_be_visible()
    page.locator("[name=token]").fill(token)
    page.get_by_role("button", name="Log in").click()
    return page


def test_one_logs_in_and_out(server: Live, visitor: Visitor) -> None:
    page = login(visitor, server, server.token("read", "operate"))
    soon(page.locator("tr[data-queue]")).to_have_count(2)
    (cookie,) = visitor.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert not cookie["value"].startswith("fw_")
    visitor.go(f"{server.url}/ui/queues/orders")
    visitor.live()
    soon(page.get_by_role("button", name="Pause", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    soon(page.get_by_role("heading", name="Log in to Fairway")).to_be_visible()
    visitor.go(f"{server.url}/ui/queues/orders")
    assert page.url.endswith("/ui/login")


def test_a_wrong_token_is_refused(server: Live, visitor: Visitor) -> None:
    visitor.expected = ("401",)
    page = login(visitor, server, "fw_0123456789ab_wrong")
    soon(page.get_by_role("alert")).to_contain_text("not valid")
    visitor.go(server.url)
    assert page.url.endswith("/ui/login")


def test_a_reader_sees_no_buttons_and_no_foreign_queue(server: Live, visitor: Visitor) -> None:
    page = login(visitor, server, server.token("read", queues=("orders",)))
    soon(page.locator("tr[data-queue]")).to_have_count(1)
    visitor.live()
    assert "secret-plans" not in page.content()
    for path in ("", "/tenants", "/submissions", "/dead", "/consumers"):
        visitor.go(f"{server.url}/ui/queues/orders{path}")
        visitor.live()
        assert page.locator("main [hx-post], main [data-weigh], #weigh").count() == 0
    visitor.expected = ("403",)
    for name in ("secret-plans", "no-such-queue"):
        visitor.go(f"{server.url}/ui/queues/{name}")
        assert visitor.status == 403
        assert name not in page.locator("body").inner_text()


def test_a_form_without_its_csrf_token_changes_nothing(server: Live, visitor: Visitor) -> None:
    token = server.token("read", "operate")
    page = login(visitor, server, token)
    visitor.go(f"{server.url}/ui/queues/orders")
    visitor.live()
    visitor.expected = ("403",)
    send = """(csrf) => fetch("/ui/queues/orders/pause", {method: "POST",
        headers: csrf ? {"X-Fairway-CSRF": csrf} : {}}).then((answer) => answer.status)"""
    given = page.evaluate("JSON.parse(document.body.getAttribute('hx-headers'))['X-Fairway-CSRF']")
    with fairway.open(server.url, "orders", token=token) as q:
        for wrong in ("", "0" * 64, given[:-1]):
            assert page.evaluate(send, wrong) == 403
        assert not q.stats().paused
        assert page.evaluate(send, given) == 204
        assert q.stats().paused
        q.resume()


def test_a_revoked_token_ends_the_session_of_an_open_page(server: Live, browser: Browser) -> None:
    with Visitor(browser) as visitor:
        token = server.token("read")
        page = login(visitor, server, token)
        soon(page.locator("tr[data-queue]")).to_have_count(2)
        visitor.go(f"{server.url}/ui/queues/orders")
        visitor.live()
        server.tokens.revoke(token.split("_")[1])
        soon(page.get_by_role("heading", name="Log in to Fairway")).to_be_visible()
