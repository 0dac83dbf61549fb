"""The pages of the dashboard in a real browser, on a server that is open to this machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

import fairway
from tests.browser.visitor import Visitor, soon
from tests.server.live import Live, live, served, until

pytestmark = pytest.mark.real
EVIL = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>"
Q = "/ui/queues/orders"
CUT = """[...document.querySelectorAll("main *")]
  .filter((one) => !one.closest(".tabs") && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 80))"""
PAGES = ["/", Q, f"{Q}/tenants", f"{Q}/submissions", f"{Q}/dead", f"{Q}/consumers", f"{Q}/explain"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("pages"), queues=["orders", "mail"]) as found:
        yield found


@pytest.fixture(scope="module")
def q(server: Live) -> Iterator[fairway.Queue]:
    """A queue with a bit of everything in it."""
    with fairway.open(server.url, "orders") as made:
        made.submit(chunks=5000, tenant="whale", metadata={"mode": EVIL}, info=EVIL.encode())
        made.submit(chunks=300, tenant="acme")
        made.put(b"x", tenant=EVIL)
        (lease,) = made.reserve(1, strategy="NewestFirst")
        made.fail(lease, error=f"ValueError: {EVIL}", retry=False)
        made.reserve(2, consumer="nightly", seq=1, lease_seconds=3600)  # they stay out for the whole module
        yield made


def tenant(q: fairway.Queue, name: str):  # type: ignore[no-untyped-def]
    return next(one for one in q.tenants() if one.name == name)


def row(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.locator("#tenants tr").filter(has=page.get_by_role("link", name=name, exact=True))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_without_a_complaint(
    server: Live, q: fairway.Queue, visitor: Visitor, path: str
) -> None:
    page = visitor.go(server.url + path)
    assert visitor.status == 200
    soon(page.locator("h1")).to_be_visible()
    visitor.live()


def test_a_submission_has_a_page(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(f"{server.url}{Q}/submissions")
    page.locator("a.id").first.click()
    soon(page.locator("#submission .big")).to_contain_text("of 5,000 chunks done")
    soon(page.locator("dd", has_text="<script>").first).to_be_visible()


def test_what_tenants_and_errors_say_is_shown_as_text(
    server: Live, q: fairway.Queue, visitor: Visitor
) -> None:
    q.set_weight(EVIL, 2)
    for path in (Q, f"{Q}/tenants", f"{Q}/submissions?state=", f"{Q}/dead"):
        page = visitor.go(server.url + path)
        visitor.live()
        soon(page.locator("main").get_by_text("<script>document.title").first).to_be_visible()
        assert "owned" not in page.title()
        assert page.locator("main script, main img").count() == 0
    soon(page.locator("#dead code").first).to_have_text(f"ValueError: {EVIL}")
    # Its buttons work as well.
    page = visitor.go(server.url + Q)
    row(page, EVIL).get_by_role("button", name="Pause").click()
    soon(row(page, EVIL).get_by_role("button", name="Resume")).to_be_visible()
    assert tenant(q, EVIL).paused
    soon(page.locator(".toast")).to_contain_text("<script>")
    q.resume(tenant=EVIL)


def test_figures_move_without_a_reload(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(server.url + Q)
    visitor.live()
    page.evaluate("window.unloaded = 'no'")
    before = q.stats()
    soon(page.locator("#n-waiting")).to_have_attribute("title", f"{before.chunks_waiting:,}")
    q.submit(chunks=700, tenant="late")
    soon(page.locator("#n-waiting")).to_have_attribute("title", f"{before.chunks_waiting + 700:,}")
    soon(row(page, "late")).to_contain_text("700")
    q.complete(q.reserve(200))
    soon(row(page, "whale").locator("td").nth(6)).to_contain_text(re.compile(r"\d+ (ms|s|min)"))
    assert page.evaluate("window.unloaded") == "no"
    assert page.locator("#chart-throughput canvas").count() == 1
    page.wait_for_function("points.some((p) => p[2] > 0)")  # a look may fall between a reserve and its end


def test_progress_moves_without_a_reload(server: Live, visitor: Visitor) -> None:
    with fairway.open(server.url, "mail") as mail:
        sub = mail.submit(chunks=10, tenant="acme")
        page = visitor.go(f"{server.url}/ui/queues/mail/submissions")
        visitor.live()
        page.evaluate("window.unloaded = 'no'")
        line = page.locator(f"tr[data-submission='{sub.id}']")
        soon(line).to_contain_text("0 / 10")
        mail.complete(mail.reserve(4))
        soon(line).to_contain_text("4 / 10")
        mail.complete(mail.reserve(6))
        soon(line).to_have_count(0)  # it has ended
        assert page.evaluate("window.unloaded") == "no"


def test_a_tab_that_nobody_looks_at_lets_its_stream_go(
    server: Live, q: fairway.Queue, visitor: Visitor
) -> None:
    admission = server.process.app.admission  # type: ignore[union-attr]
    hide = "(on) => { Object.defineProperty(document, 'hidden', {value: on, configurable: true});"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    visitor.page.clock.install()
    page = visitor.go(server.url + Q)
    visitor.live()
    page.evaluate("window.unloaded = 'no'")
    page.evaluate(hide, True)
    page.clock.fast_forward(61_000)
    until = time.monotonic() + 30
    while admission.streams and time.monotonic() < until:
        page.wait_for_timeout(50)
    assert admission.streams == 0
    page.evaluate(hide, False)
    visitor.live()
    page.wait_for_function("window.unloaded === undefined")


def test_a_page_says_when_its_server_is_away_and_goes_on_when_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    for width in (1280, 400):
        folder = tmp_path / str(width)
        folder.mkdir()
        with Visitor(browser, viewport={"width": width, "height": 800}) as visitor:
            with served(folder, "--queue", "orders") as first:
                port = int(first.url.rpartition(":")[2])
                page = visitor.go(f"{first.url}{Q}")
                visitor.live()
                soon(page.locator("#live.on")).to_have_attribute("title", "Live")
            soon(page.get_by_text("No connection")).to_be_visible()
            assert page.evaluate(CUT) == [] and page.evaluate("document.documentElement.scrollWidth") == width
            with served(folder, port=port):
                visitor.live()
                soon(page.get_by_text("No connection")).to_have_count(0)


def test_a_tenant_is_paused_and_resumed(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(server.url + Q)
    visitor.live()
    row(page, "acme").get_by_role("button", name="Pause").click()
    soon(row(page, "acme").locator(".badge")).to_have_text("paused")
    assert tenant(q, "acme").paused
    row(page, "acme").get_by_role("button", name="Resume").click()
    soon(row(page, "acme").get_by_role("button", name="Pause")).to_be_visible()
    assert not tenant(q, "acme").paused


def test_a_tenant_is_weighed(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(f"{server.url}{Q}/tenants?name=ac")
    soon(page.locator("#tenants tbody tr")).to_have_count(1)
    visitor.live()
    row(page, "acme").get_by_role("button", name="Weight").click()
    soon(page.locator("#weigh-name")).to_have_text("acme")
    page.locator("#weigh [name=weight]").fill("2.5")
    page.locator("#weigh").get_by_role("button", name="Set weight").click()
    soon(row(page, "acme").locator(".weight")).to_have_text("2.5")
    soon(page.locator("#weigh")).to_be_hidden()
    assert tenant(q, "acme").weight == 2.5


def test_the_queue_is_paused_after_a_question(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(server.url + Q)
    visitor.live()
    page.get_by_role("button", name="Pause queue").click()
    page.locator("#confirm").get_by_role("button", name="Keep").click()
    soon(page.locator("#confirm")).to_be_hidden()
    assert not q.stats().paused
    page.get_by_role("button", name="Pause queue").click()
    page.locator("#confirm").get_by_role("button", name="Go ahead").click()
    soon(page.get_by_role("button", name="Resume queue")).to_be_visible()
    assert q.stats().paused
    page.get_by_role("button", name="Resume queue").click()
    soon(page.get_by_role("button", name="Pause queue")).to_be_visible()
    assert not q.stats().paused


def test_a_dead_letter_is_redriven(server: Live, visitor: Visitor) -> None:
    with fairway.open(server.url, "mail") as mail:
        mail.put(b"once more", tenant="acme")
        (lease,) = mail.reserve(1)
        mail.fail(lease, error="no such street", retry=False)
        page = visitor.go(f"{server.url}/ui/queues/mail/dead")
        visitor.live()
        card = page.locator(f"[data-dead='{lease.submission}']")
        soon(card).to_contain_text("no such street")
        card.get_by_role("button", name="Redrive").click()
        page.locator("#confirm").get_by_role("button", name="Go ahead").click()
        soon(card).to_have_count(0)
        assert list(mail.dead()) == []
        (again,) = mail.reserve(1, wait_seconds=20)
        assert again.payload == b"once more"
        mail.complete(again)


def test_a_submission_is_cancelled(server: Live, visitor: Visitor) -> None:
    with fairway.open(server.url, "mail") as mail:
        sub = mail.submit(chunks=3, tenant="acme")
        page = visitor.go(f"{server.url}/ui/queues/mail/submissions/{sub.id}")
        visitor.live()
        page.get_by_role("button", name="Cancel").click()
        page.locator("#confirm").get_by_role("button", name="Go ahead").click()
        soon(page.locator("#submission .badge")).to_have_text("cancelled")
        assert mail.submission(sub.id).state == "cancelled"


def test_what_cannot_be_done_is_told(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    with fairway.open(server.url, "mail") as mail:
        sub = mail.submit(chunks=3, tenant="acme")
        page = visitor.go(f"{server.url}/ui/queues/mail/submissions/{sub.id}")
        visitor.expected = ("409",)  # browsers write every such answer on the console
        visitor.live()
        page.get_by_role("button", name="Cancel").click()
        mail.cancel(sub.id)  # somebody else was quicker
        page.locator("#confirm").get_by_role("button", name="Go ahead").click()
        soon(page.locator(".toast.bad")).to_contain_text("is cancelled already")


def test_a_button_that_is_asked_about_stays_until_its_request_is_sent(
    server: Live, q: fairway.Queue, visitor: Visitor
) -> None:
    """Neither an answer that was on its way nor a change while the dialog closes takes it out of the page."""
    with fairway.open(server.url, "mail") as mail:
        sub = mail.submit(chunks=3, tenant="acme")
        at = f"{server.url}/ui/queues/mail/submissions/{sub.id}"
        page = visitor.go(at)
        visitor.live()
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        page.route(at, hold, times=1)
        mail.submit(chunks=1, tenant="acme")  # a change
        until(lambda: page.wait_for_timeout(50) or held)
        page.get_by_role("button", name="Cancel").click()
        with page.expect_response(at):
            held[0].continue_()
        page.wait_for_timeout(100)
        yes = "document.querySelector('#confirm [value=yes]').click()"
        assert page.evaluate(f"{yes}; Boolean(busy(document.getElementById('submission')))")
        soon(page.locator("#submission .badge")).to_have_text("cancelled")
        assert mail.submission(sub.id).state == "cancelled"


def test_a_change_behind_a_dialog_is_shown_when_it_is_closed(
    server: Live, q: fairway.Queue, visitor: Visitor
) -> None:
    with fairway.open(server.url, "mail") as mail:
        sub = mail.submit(chunks=3, tenant="acme")
        page = visitor.go(f"{server.url}/ui/queues/mail/submissions/{sub.id}")
        visitor.live()
        page.get_by_role("button", name="Cancel").click()
        mail.cancel(sub.id)
        page.wait_for_timeout(2500)  # it was told meanwhile
        soon(page.get_by_role("button", name="Cancel", include_hidden=True)).to_have_count(1)
        page.locator("#confirm").get_by_role("button", name="Keep").click()
        soon(page.locator("#submission .badge")).to_have_text("cancelled")


def test_a_strategy_is_explained(server: Live, q: fairway.Queue, visitor: Visitor) -> None:
    page = visitor.go(f"{server.url}{Q}/explain")
    soon(page.locator(".explained")).to_contain_text("Fair:")
    page.locator("[name=strategy]").fill("OldestFirst")
    page.get_by_role("button", name="Explain").click()
    soon(page.locator(".explained")).to_contain_text("OldestFirst:")
    page.locator("[name=strategy]").fill("Fairest(")
    page.get_by_role("button", name="Explain").click()
    soon(page.locator("#explained .error")).to_contain_text("cannot be understood")


def test_nothing_scrolls_sideways_on_a_phone(server: Live, q: fairway.Queue, browser: Browser) -> None:
    q.set_weight("a-tenant-with-a-name-as-long-as-" + "names-may-be-" * 8, 1)
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    wide = "[document.documentElement.scrollWidth, document.body.scrollWidth, window.innerWidth]"
    with Visitor(browser, **phone) as visitor:
        for path in (*PAGES, f"{Q}/submissions?state="):
            page = visitor.go(server.url + path)
            visitor.live()
            assert page.evaluate(wide) == [390, 390, 390], path
            assert page.evaluate(CUT) == [], path  # nor is anything cut off; tabs may be moved by a finger
        visitor.check()


def test_dark_is_what_the_machine_says_or_the_reader(server: Live, browser: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with Visitor(browser, color_scheme="dark") as visitor:
        page = visitor.go(server.url)
        dark = page.evaluate(colour)
        page.locator("#theme").click()
        light = page.evaluate(colour)
        assert (dark, light) == ("rgb(13, 16, 19)", "rgb(245, 246, 248)")
        page.reload()
        assert page.evaluate(colour) == light  # the choice stays
        visitor.check()
    with Visitor(browser, color_scheme="light") as visitor:
        assert visitor.go(server.url).evaluate(colour) == light
