"""Bucket queues in a browser and in the metrics: their sizes, their dead letters, and who may put those back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

import fairway
from fairway import limits
from fairway.server.web.dashboard import BUCKET_PAGES
from tests.server.live import Live, live, until

PAGE = "/ui/buckets/events"
CSRF = re.compile(r'X-Fairway-CSRF": "([0-9a-f]{64})"')


def dead(q: fairway.BucketQueue, *payloads: bytes) -> None:
    """Let messages die, each with an error of its own."""
    before = q.stats().dead
    q.put_many(list(payloads))
    for _ in payloads:
        (lease,) = q.reserve(wait_seconds=30)
        q.fail(lease, f"cannot read {lease.payload.decode()}", retry=False)
    until(lambda: q.stats().dead == before + len(payloads), 60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, queues=["default"]) as found:
        with fairway.open(found.url, "events", kind="bucket") as q:
            dead(q, b"one", b"<b>two</b>")
            q.put(b"ready")
        yield found


class Browser:
    """Somebody who has logged in."""

    def __init__(self, server: Live, *rights: str, queues: tuple[str, ...] = ("*",)) -> None:
        token = server.token(*rights, queues=queues)  # from the first one on there is a login
        self._stack = ExitStack()
        self.http: httpx2.Client = self._stack.enter_context(server.http())
        page = self.http.get("/ui/login").text
        found = CSRF.search(page)
        assert found
        form = {"csrf": found[1], "token": token}
        assert self.http.post("/ui/login", data=form).status_code == 303
        found = CSRF.search(self.http.get("/").text)
        assert found
        self.http.headers["X-Fairway-CSRF"] = found[1]

    def __enter__(self) -> httpx2.Client:
        return self.http

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def test_the_list_and_the_page_tell_the_sizes_and_the_dead(server: Live) -> None:
    with Browser(server, "read") as http:
        listed = http.get("/").text
        row = re.search(r'<tr data-bucket="events">.*?</tr>', listed, re.DOTALL)
        assert row and re.findall(r'data-label="(\w+)">(\d+)<', row[0]) == [
            ("Ready", "1"), ("Delayed", "0"), ("Leased", "0"), ("Buckets", "1"), ("Dead", "2"),
        ]  # fmt: skip
        page = http.get(PAGE).text
        assert 'id="n-dead" title="2"' in page and 'id="n-ready" title="1"' in page
        assert "cannot read one" in page and "cannot read &lt;b&gt;two" in page and "<b>two" not in page
        assert "hx-post" not in page, "who may only look has no buttons"
        part = http.get(PAGE, headers={"HX-Request": "true"}).text
        assert "<html" not in part and "cannot read one" in part
        led = http.get("/ui/queues/events")
        assert (led.status_code, led.headers["location"]) == (303, PAGE)
        with http.stream("GET", "/ui/live") as stream:
            assert any('data-bucket="events"' in line for line in stream.iter_lines())


def test_letters_are_put_back_or_removed_one_by_one_or_all(server: Live) -> None:
    with Browser(server, "read", "operate") as http, _open(server) as q:
        ids = re.findall(r'data-letter="([0-9a-f]{32})"', http.get(PAGE).text)
        assert len(ids) == 2
        told = http.post(f"{PAGE}/purge", data={"id": ids[0]})
        assert told.status_code == 204 and "1 dead letter removed." in told.headers["hx-trigger"]
        assert re.findall(r'data-letter="(\w+)"', http.get(PAGE).text) == ids[1:]
        row = re.search(r'<tr data-bucket="events">.*?</tr>', http.get("/").text, re.DOTALL)
        assert row and "Dead" in row[0] and ">1<" in row[0], "the list knows at once"
        assert http.post(f"{PAGE}/redrive").status_code == 204
        assert [letter.id for letter in q.dead()] == []
        payloads = {lease.payload for lease in q.reserve(10, wait_seconds=30)}
        assert payloads > {b"ready"} and len(payloads) == 2
        dead(q, b"three", b"four")
        assert "2 dead letters removed." in http.post(f"{PAGE}/purge").headers["hx-trigger"]
        for wrong in ("x", "0" * 31, "../x"):
            answer = http.post(f"{PAGE}/purge", data={"id": wrong}, headers={"HX-Request": "true"})
            assert answer.status_code == 400, wrong


def _open(server: Live) -> fairway.BucketQueue:
    token = server.token("submit", "work", "read", "operate")
    return fairway.open(server.url, "events", kind="bucket", token=token)


def test_letters_come_page_by_page(server: Live) -> None:
    with Browser(server, "read") as http, _open(server) as q:
        dead(q, *(b"%d" % n for n in range(limits.DASHBOARD_ROWS)))
        first = http.get(PAGE).text
        following = re.search(r'href="([^"]*after=[^"]*)"', first)
        assert following and first.count("data-letter=") == limits.DASHBOARD_ROWS
        assert http.get(following[1]).text.count("data-letter=") == 2


def test_rights_and_forms_are_guarded_as_on_every_page(server: Live) -> None:
    server.token("read")  # from now on everybody needs one
    for page in BUCKET_PAGES:
        with server.http() as http:
            path = page.path.replace("{queue}", "events")
            assert http.request(page.method, path).headers["location"] == "/ui/login"
    with (
        Browser(server, "read") as reader,
        Browser(server, "operate") as steerer,
        Browser(server, "read", "operate", queues=("mine",)) as stranger,
    ):
        for page in BUCKET_PAGES:
            path = page.path.replace("{queue}", "events")
            allowed = reader if page.method == "GET" else steerer
            refused = steerer if page.method == "GET" else reader
            assert refused.request(page.method, path).status_code == 403, path
            answers = [
                stranger.request(page.method, page.path.replace("{queue}", name)) for name in ("events", "no")
            ]
            assert [answer.status_code for answer in answers] == [403, 403]
            assert answers[0].text == answers[1].text
            if page.method == "POST":
                wrong = {"X-Fairway-CSRF": "0" * 64}
                assert allowed.request(page.method, path, headers=wrong).status_code == 403
            policy = allowed.request(page.method, path).headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "events" not in stranger.get("/").text
        text = reader.get(PAGE).text
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:", text)
        for odd in (
            "/ui/buckets/none",
            "/ui/buckets/default",
            f"{PAGE}?after=x",
            f"{PAGE}?after=a1",
            f"{PAGE}/x",
        ):
            assert reader.get(odd).status_code in (400, 404), odd


def test_a_deleted_bucket_queue_leaves_the_pages(server: Live) -> None:
    with Browser(server, "read") as http, _open(server) as q:
        assert http.get(PAGE).status_code == 200
        q.delete()
        until(lambda: http.get(PAGE).status_code == 404, 60)
        assert "events" not in http.get("/").text


def metric(server: Live, name: str, token: str) -> float | None:
    with server.http(token) as http:
        found = re.search(rf"^{name} ([0-9.e+]+)$", http.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else None


def test_dead_messages_are_in_the_metrics(server: Live) -> None:
    token, foreign = server.token("read"), server.token("read", queues=("mine",))
    with _open(server) as q:
        assert metric(server, 'fairway_bucket_messages_dead{queue="events"}', token) == 2.0
        assert metric(server, 'fairway_bucket_messages_ready{queue="events"}', token) == 1.0
        assert metric(server, 'fairway_bucket_messages_dead{queue="events"}', foreign) is None
        q.purge()
        # What was counted is kept for ten times as long as the counting took.
        until(lambda: metric(server, 'fairway_bucket_messages_dead{queue="events"}', token) == 0.0, 200)


def test_messages_of_a_fair_queue_that_die_are_counted_although_they_have_ended(server: Live) -> None:
    token = server.token("read", "submit", "work")
    died = 'fairway_queue_chunks_died_total{queue="default"}'
    with fairway.open(server.url, token=token) as q:
        assert metric(server, died, token) == 0.0
        q.put_many([b"1", b"2"])
        q.fail(q.reserve(2), "no", retry=False)
        assert metric(server, died, token) == 2.0
        assert metric(server, 'fairway_queue_chunks_dead{queue="default"}', token) == 0.0
