"""The dashboard over HTTP: who sees which page, what a form needs, and what every answer carries."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import fairway
from fairway import limits
from fairway.runtime.looping import LoopPort
from fairway.server.queues import OpenQueue
from fairway.server.secret import load
from fairway.server.settings import settings
from fairway.server.tokens import Tokens
from fairway.server.web import rendering
from fairway.server.web.dashboard import PAGES
from fairway.server.web.sessions import Sessions
from tests.server.live import Live, live, served

Q = "/ui/queues/mine"
LOOKS = [
    page for page in PAGES if page.method == "GET" and page.right == "read" and not page.path.endswith("live")
]
STEERS = [page for page in PAGES if page.right == "operate"]
FORMS = {"tenant": {"tenant": "t", "paused": "no"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("dashboard"), queues=["mine", "secret-plans"]) as found:
        with fairway.open(found.url, "mine") as q:
            q.submit(chunks=3, tenant="t")
        found.token("read")
        yield found


def csrf_of(page: str) -> str:
    found = re.search(r'X-Fairway-CSRF": "([0-9a-f]{64})"', page)
    assert found
    return found[1]


@contextmanager
def login(server: Live, *rights: str, queues: tuple[str, ...] = ("*",)) -> Iterator[httpx2.Client]:
    """A browser that has logged in, with the CSRF token of its pages."""
    with server.http() as http:
        page = http.get("/ui/login")
        form = {"csrf": csrf_of(page.text), "token": server.token(*rights, queues=queues)}
        answer = http.post("/ui/login", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        http.headers["X-Fairway-CSRF"] = csrf_of(http.get("/").text)
        yield http


def path_of(page, queue: str = "mine", id: str = "1") -> str:  # type: ignore[no-untyped-def]
    return page.path.replace("{queue}", queue).replace("{id}", id)


def test_without_a_session_every_page_leads_to_the_login(server: Live) -> None:
    for page in PAGES:
        if page.anybody:
            continue
        with server.http() as http:
            answer = http.request(page.method, path_of(page))
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login"), page.path
            part = http.request(page.method, path_of(page), headers={"HX-Request": "true"})
            assert (part.status_code, part.headers["hx-redirect"]) == (401, "/ui/login"), page.path
            assert "mine" not in answer.text + part.text


def test_a_right_opens_the_pages_of_its_kind_alone(server: Live) -> None:
    with fairway.open(server.url, "mine", token=server.token("submit")) as q:
        sub = q.submit(chunks=1, tenant="t")
    with (
        login(server, "read") as reader,
        login(server, "operate") as steerer,
        login(server, "work") as worker,
    ):
        for page in LOOKS:
            path = path_of(page, id=str(sub.id))
            assert reader.get(path).status_code == 200, path
            assert reader.get(path, headers={"HX-Request": "true"}).status_code == 200, path
            assert steerer.get(path).status_code == worker.get(path).status_code == 403, path
        for page in STEERS:
            path, form = path_of(page, id=str(sub.id)), FORMS.get(page.name, {})
            assert reader.post(path, data=form).status_code == 403, path
            assert worker.post(path, data=form).status_code == 403, path
            assert steerer.post(path, data=form).status_code in (204, 409), path


def test_a_page_for_who_may_steer_has_buttons_and_for_others_none(server: Live) -> None:
    with fairway.open(server.url, "mine", token=server.token("submit")) as q:
        q.submit(chunks=1, tenant="buttons")
    with login(server, "read") as reader, login(server, "read", "operate") as both:
        for path in (Q, f"{Q}/tenants", f"{Q}/submissions"):
            assert "hx-post" in both.get(path).text
            assert "hx-post" not in reader.get(path).text


def test_a_foreign_queue_is_never_named(server: Live) -> None:
    with login(server, "read", queues=("mine",)) as http:
        texts = [http.get("/").text]
        for page in LOOKS:
            answers = [http.get(path_of(page, queue)) for queue in ("secret-plans", "no-such-queue")]
            assert {answer.status_code for answer in answers} == {403}
            assert answers[0].text == answers[1].text
            texts += [answer.text for answer in answers]
        assert not any("secret-plans" in text for text in texts)
        with http.stream("GET", "/ui/live") as stream:
            for line in stream.iter_lines():
                assert "secret-plans" not in line
                if "mine" in line:
                    break


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.method == "POST"], ids=lambda page: page.name
)
def test_a_form_without_the_csrf_token_of_its_session_changes_nothing(server: Live, page) -> None:  # type: ignore[no-untyped-def]
    with login(server, "read", "operate") as http, login(server, "read", "operate") as other:
        form = FORMS.get(page.name, {})
        for wrong in ("", "0" * 64, other.headers["X-Fairway-CSRF"]):
            answer = http.post(
                path_of(page), data=form, headers={"X-Fairway-CSRF": wrong, "HX-Request": "true"}
            )
            assert answer.status_code == 403, page.path
            assert "load it again" in answer.text
        assert http.get(Q).status_code == 200  # nor is one logged out


def test_a_page_of_another_site_changes_nothing(server: Live) -> None:
    with login(server, "read", "operate") as http:
        for origin in ("https://evil.example", "null"):
            answer = http.post(f"{Q}/pause", headers={"Origin": origin})
            assert answer.status_code == 403
        assert http.post(f"{Q}/pause", headers={"Origin": server.url}).status_code == 204
        assert http.post(f"{Q}/resume").status_code == 204


def test_the_cookie_is_for_this_server_alone_and_holds_no_secret(server: Live) -> None:
    with server.http() as http:
        page = http.get("/ui/login")
        token = server.token("read")
        answer = http.post("/ui/login", data={"csrf": csrf_of(page.text), "token": token})
        header = answer.headers["set-cookie"]
        assert "HttpOnly" in header and "SameSite=Strict" in header and "Path=/" in header
        assert "Domain" not in header and "Secure" not in header
        assert token.split("_", 2)[2] not in header
        # It opens no REST.
        assert http.get("/v1/queues").status_code == 401


def test_with_tls_the_cookie_is_bound_to_it(server: Live) -> None:
    sessions = Sessions(b"x" * 32, server.process.app.callers, True)  # type: ignore[union-attr]
    _, header = sessions.header(sessions.find({}))
    assert header.startswith(b"__Host-fairway-") and header.endswith(b"; Secure")


@pytest.mark.parametrize("change", ["end", "id", "nonce", "seal", "cut", "empty", "dots"])
def test_a_cookie_that_was_changed_is_nobodys(server: Live, change: str) -> None:
    with login(server, "read") as http:
        (cookie,) = http.cookies.jar
        id, end, nonce, seal = str(cookie.value).split(".")
        wrong = {
            "end": f"{id}.{int(end) + 1}.{nonce}.{seal}",
            "id": f"{'0' * 12}.{end}.{nonce}.{seal}",
            "nonce": f"{id}.{end}.{'0' * 16}.{seal}",
            "seal": f"{id}.{end}.{nonce}.{'0' * 64}",
            "cut": f"{id}.{end}.{nonce}",
            "empty": "",
            "dots": "...",
        }[change]
        with server.http(headers={"Cookie": f"{cookie.name}={wrong}"}) as other:
            assert other.get("/").status_code == 303


def test_a_cookie_of_nobody_is_no_session_of_a_token(server: Live) -> None:
    with server.http() as http:
        http.get("/ui/login")
        (cookie,) = http.cookies.jar
        assert str(cookie.value).startswith(".")
        assert http.get("/").status_code == 303


def test_a_cookie_of_nobody_that_was_made_up_is_replaced(tmp_path: Path) -> None:
    with live(tmp_path) as server, server.http() as http:
        http.get("/")
        (cookie,) = http.cookies.jar
        _, end, nonce, seal = str(cookie.value).split(".")
        for value, kept in (
            (cookie.value, True),
            (f".{end}.{nonce}.{'0' * 64}", False),
            (f".1.{nonce}.{seal}", False),
        ):
            with server.http(headers={"Cookie": f"{cookie.name}={value}"}) as other:
                assert ("set-cookie" not in other.get("/").headers) is kept


def test_a_session_ends_with_its_token_and_with_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(tmp_path) as server:
        server.token("read")
        made, text = server.tokens.create("short", rights=["read"], seconds=3600)
        sessions = server.process.app.dashboard.sessions  # type: ignore[union-attr]
        session = sessions.begin(text)
        cookie = {b"cookie": f"{sessions.name}={session.cookie}".encode()}
        assert sessions.find(cookie).token == made
        real = time.time
        monkeypatch.setattr("time.time", lambda: real() + 3601)  # its token is over, and so is its own time
        assert sessions.find(cookie).token is None
        monkeypatch.setattr("time.time", real)
        server.tokens.revoke(made.id)
        assert sessions.find(cookie).token is None
        _, other = server.tokens.create("long", rights=["read"])
        session = sessions.begin(other)
        cookie = {b"cookie": f"{sessions.name}={session.cookie}".encode()}
        assert sessions.find(cookie).token is not None
        monkeypatch.setattr("time.time", lambda: real() + limits.SESSION_SECONDS_MAX + 1)
        assert sessions.find(cookie).token is None


def test_every_process_of_a_server_reads_the_cookies_of_the_others(tmp_path: Path) -> None:
    from fairway.server.callers import Callers

    made = settings({"store": str(tmp_path / "work.db")}, {})
    tokens = Tokens(made.tokens_path)
    token, text = tokens.create("x")
    secret = load(made.secret_path)
    first, second = (Sessions(secret, Callers(made, Tokens(made.tokens_path)), False) for _ in range(2))
    cookie = {b"cookie": f"{first.name}={first.begin(text).cookie}".encode()}
    assert second.find(cookie).token == token
    stranger = Sessions(b"y" * 32, Callers(made, tokens), False)
    assert stranger.name != first.name


@pytest.mark.real
def test_with_several_processes_any_of_them_answers(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2", "--queue", "mine") as server:
        server.ready()
        with httpx2.Client(base_url=server.url, trust_env=False, timeout=60) as http:
            csrf = csrf_of(http.get("/").text)
            cookies = dict(http.cookies)
        for press in ("pause", "resume") * 3:  # each over a connection of its own
            with httpx2.Client(base_url=server.url, trust_env=False, timeout=60, cookies=cookies) as http:
                assert http.post(f"{Q}/{press}", headers={"X-Fairway-CSRF": csrf}).status_code == 204
                assert ("Resume queue" in http.get(Q).text) is (press == "pause")


def test_a_server_that_wants_no_token_shows_all_at_once(tmp_path: Path) -> None:
    with live(tmp_path) as server, server.http() as http:
        page = http.get("/")
        assert page.status_code == 200 and "Log out" not in page.text
        assert http.get("/ui/login").headers["location"] == "/"
        http.headers["X-Fairway-CSRF"] = csrf_of(page.text)
        assert http.post("/ui/queues/default/pause").status_code == 204
        # From the first token on everybody needs one.
        server.token("read")
        assert http.get("/").status_code == 303
        assert http.post("/ui/queues/default/resume").status_code == 303


def test_a_page_that_was_drawn_holds_no_memory_of_answers(tmp_path: Path) -> None:
    with live(tmp_path) as server, server.http() as http, fairway.open(server.settings.store) as q:
        q.submit([b""], attempts_max=1, policy="dead_letter")
        q.fail(q.reserve(1), error="e" * 1000)
        q.submit([b""])
        assert server.process.app is not None
        for page in ("dead", "submissions"):
            assert http.get(f"/ui/queues/default/{page}").status_code == 200
            assert server.process.app.admission.unread_bytes == 0


def test_every_answer_carries_the_policy(server: Live) -> None:
    with login(server, "read") as http:
        paths = [
            "/",
            "/ui/login",
            Q,
            "/ui/nothing",
            "/ui/queues/secret",
            f"/ui/files/{rendering.version()}/app.js",
        ]
        for path in paths:
            headers = http.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy, path
            assert "script-src 'self'" in policy and "style-src 'self'" in policy
            assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
            kept = "immutable" if "/files/" in path else "no-store"
            assert kept in headers["cache-control"]


def test_no_page_has_a_script_or_style_inside(server: Live) -> None:
    with login(server, "read", "operate") as http:
        for page in LOOKS:
            text = http.get(path_of(page)).text
            assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:", text), (
                page.path
            )


def test_files_are_found_by_their_names_only(server: Live) -> None:
    at = f"/ui/files/{rendering.version()}"
    with server.http() as http:
        for name in rendering.files():
            assert http.get(f"{at}/{name}").status_code == 200
        for name in ("../dashboard.py", "%2e%2e/dashboard.py", "nothing.js", "", "app.css/x"):
            assert http.get(f"{at}/{name}").status_code == 404
        assert http.get("/ui/files/000000000000/app.css").status_code == 404


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"tenant": "t", "weight": "nan"}, 400),
        ({"tenant": "t", "weight": "1e9"}, 400),
        ({"tenant": "t", "weight": "<b>"}, 400),
        ({"tenant": "t"}, 400),
        ({"weight": "1"}, 400),
        ({"tenant": "t" * 300, "weight": "1"}, 400),
        ({"tenant": "t", "weight": "2", "x": "y" * limits.FORM_BYTES_MAX}, 413),
        ({"tenant": "t", "weight": "2"}, 204),
    ],
)
def test_a_form_is_checked_as_rest_checks_its_bodies(server: Live, form: dict[str, str], status: int) -> None:
    with login(server, "operate") as http:
        answer = http.post(f"{Q}/tenants", data=form, headers={"HX-Request": "true"})
        assert answer.status_code == status, answer.text
        assert "<b>" not in answer.text or answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path",
    [
        f"{Q}/submissions?after=x", f"{Q}/submissions?state=odd", f"{Q}/dead?after=%00", f"{Q}/tenants?x=1",
        f"{Q}/tenants?name=%ff", f"{Q}/submissions/0", f"{Q}/submissions/x", "/ui", "/ui/", f"{Q}//", f"{Q}/nothing",
        "/ui/queues/" + "q" * 3000,
    ],
)  # fmt: skip
def test_an_odd_address_is_refused_and_never_a_failure(server: Live, path: str) -> None:
    with login(server, "read") as http:
        assert http.get(path).status_code in (400, 403, 404)


def test_tenants_are_found_by_the_beginning_of_their_names(server: Live) -> None:
    names = ["a", "ab", "abc", "abd", "ac", "b", "\ue000", "\ue000x", "z"]
    with fairway.open(server.url, "mine", token=server.token("operate")) as q:
        for name in names:
            q.set_weight(name, 2)
    with login(server, "read") as http:
        for begin in ("ab", "a", "\ue000", "z", "abd", "q"):
            text = http.get(f"{Q}/tenants", params={"name": begin}, headers={"HX-Request": "true"}).text
            found = re.findall(r'data-tenant="([^"]*)"', text)
            assert found == sorted(name for name in names if name.startswith(begin))


def test_tenants_come_page_by_page(tmp_path: Path) -> None:
    with live(tmp_path) as server, server.http() as http:
        with fairway.open(server.url, "default") as q:
            for i in range(limits.DASHBOARD_ROWS + 5):
                q.set_weight(f"t{i:03}&<", 2)
        text = http.get("/ui/queues/default/tenants").text
        found = re.search(r'href="([^"]*after=[^"]*)"', text)
        assert found and text.count("data-tenant=") == limits.DASHBOARD_ROWS
        following = http.get(found[1].replace("&amp;", "&")).text
        assert following.count("data-tenant=") == 5


def test_a_stream_has_buttons_only_for_who_may_steer(server: Live) -> None:
    path = f"{Q}/live?what=figures"
    with (
        login(server, "read") as reader,
        login(server, "read", "operate") as both,
        reader.stream("GET", path) as plain,
        both.stream("GET", path) as steering,
    ):
        for stream, buttons in ((plain, False), (steering, True)):
            found = False
            for line in stream.iter_lines():
                found = found or "hx-post" in line
                if line == "event: point":  # of the second look: two were drawn whole
                    break
            assert found is buttons


def test_what_changed_between_a_page_and_its_stream_is_told(tmp_path: Path) -> None:
    with live(tmp_path) as server, server.http() as http, fairway.open(server.url) as q:
        http.get("/ui/queues/default/submissions")
        q.put(b"the page does not have it")
        with http.stream("GET", "/ui/queues/default/live") as stream:
            lines = stream.iter_lines()
            told = [
                next(lines) for _ in range(6)
            ]  # `retry`, and what the first look says: nothing happens any more
        assert "event: changed" in told


def test_a_stream_ends_when_its_visitor_goes(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        admission = server.process.app.admission  # type: ignore[union-attr]
        for path in ("/ui/live", "/ui/queues/default/live?what=figures", "/v1/queues/default/events"):
            with (
                server.http(headers={"Accept": "text/event-stream"}) as http,
                http.stream("GET", path) as stream,
            ):
                lines = stream.iter_lines()  # kept: an iterator that goes takes the connection with it
                next(lines)
                assert admission.streams == 1
            until = time.monotonic() + 30
            while admission.streams and time.monotonic() < until:
                time.sleep(0.05)
            assert admission.streams == 0, path


def test_open_pages_do_not_hold_up_the_end_of_a_server(tmp_path: Path) -> None:
    with (
        live(tmp_path) as server,
        server.http() as http,
        server.http() as other,
        http.stream("GET", "/ui/queues/default/live") as first,
        other.stream("GET", "/ui/live") as second,
    ):
        one, two = first.iter_lines(), second.iter_lines()
        assert next(one) == next(two) == "retry: 2000"
        began = time.monotonic()
        server.process.stop()
        assert not any("gone" in line for line in [*one, *two])  # browsers come again by themselves
        assert time.monotonic() - began < limits.GRACE_SECONDS


def test_a_stream_of_a_queue_that_is_deleted_says_so(tmp_path: Path) -> None:
    with (
        live(tmp_path, queues=["default", "gone"]) as server,
        server.http() as http,
        http.stream("GET", "/ui/queues/gone/live") as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        with server.http() as other:
            assert other.delete("/v1/queues/gone").status_code == 204
        assert any(line == "event: gone" for line in lines)


def test_the_files_of_others_are_as_they_came(server: Live) -> None:
    folder = Path(rendering.__file__).parent / "vendor"
    told = dict(
        re.findall(
            r"^\| `([\w.-]+)` \|.*`([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE
        )
    )
    assert told.keys() == {path.name for path in folder.iterdir()} - {"README.md"}
    for name, digest in told.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def test_a_queue_of_another_node_is_shown_there(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    with login(server, "read") as http:
        assert http.get(Q).status_code == 200
        monkeypatch.setattr(OpenQueue, "elsewhere", "http://other:7420")
        answer = http.get(f"{Q}/tenants")
        assert (answer.status_code, answer.headers["location"]) == (303, f"http://other:7420{Q}")


@pytest.mark.parametrize(("elsewhere", "told"), [("http://other:7420", "at another node"), ("", "no answer")])
def test_the_list_does_not_ask_for_a_queue_that_is_not_worked_on_here(
    own: Live, monkeypatch: pytest.MonkeyPatch, elsewhere: str, told: str
) -> None:
    asked: list[object] = []

    async def ask(self: LoopPort, command: object) -> None:
        if asyncio.get_running_loop() is own._loop:  # the server that all tests share may be watched yet
            asked.append(command)
        raise fairway.NotOwner("another node")

    monkeypatch.setattr(OpenQueue, "here", False)
    monkeypatch.setattr(OpenQueue, "elsewhere", elsewhere)
    monkeypatch.setattr(LoopPort, "ask", ask)
    with own.http() as http:
        page = http.get("/").text
    assert (page.count('data-queue="default"'), page.count(told)) == (1, 1)
    assert not asked
