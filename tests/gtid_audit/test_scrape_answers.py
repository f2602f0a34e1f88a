"""Scrapes that are not parsed again: the same answers, and only for the same bytes."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gtid_audit import clock
from gtid_audit.service import shared_rendering
from gtid_audit.service.access import Access, Tokens
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.scrape_answers import REMEMBERED_MAX, ScrapeMemory, ScrapeSource
from gtid_audit.service.shared_rendering import SharedRendering
from gtid_audit.service.web import WebServer
from gtid_audit.service.web_app import WebApp
from tests.gtid_audit.build import healthy, holed
from tests.gtid_audit.served import SOON, ask, audit_all, service_of, web_server

pytestmark = pytest.mark.long  # real connections, which wait

TOKEN = "correct-horse-battery-staple"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics stay the same while a test compares answers."""
    monkeypatch.setattr(shared_rendering, "SHARED_SECONDS", SOON)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests that reached the application."""
    paths: list[str] = []
    answer = WebApp.__call__

    async def counting(app: WebApp, scope: dict[str, str], receive: object, send: object) -> None:
        paths.append(scope["path"])
        await answer(app, scope, receive, send)  # type: ignore[arg-type]

    monkeypatch.setattr(WebApp, "__call__", counting)
    return paths


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server(audit_all(service_of(healthy(), holed("holed")))) as (server, _):
        yield server


def scrape(*headers: str, path: str = "/metrics", closes: bool = True) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: x", *headers]
    lines += ["Connection: close"] if closes else []
    return "\r\n".join([*lines, "", ""]).encode()


def connected(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.address.port), timeout=SOON)


def until_end(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(1 << 16):
        received += part
    return received


def answer_to(server: WebServer, request: bytes) -> bytes:
    with closing(connected(server)) as connection:
        connection.sendall(request)
        return until_end(connection)


def one_answer(connection: socket.socket) -> bytes:
    """Read one answer of a connection that stays open."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1 << 16)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += connection.recv(1 << 16)
    assert len(body) == int(length[1])
    return head + b"\r\n\r\n" + body


def undated(answer: bytes) -> bytes:
    return re.sub(rb"\r\ndate: [^\r]*", b"", answer, count=1)


def without_load_time(answer: bytes) -> bytes:
    return re.sub(rb"(?m)^gtid_audit_fleet_loaded_timestamp_seconds .*$", b"", answer)


@pytest.mark.parametrize("accept", ["", f"Accept: {OPEN_METRICS}", "Accept: text/plain"])
@pytest.mark.parametrize("path", ["/metrics", "/metrics?a=1"])
def test_the_answer_has_the_same_bytes(
    server: WebServer, parsed: list[str], accept: str, path: str
) -> None:
    request = scrape(*([accept] if accept else []), path=path)
    first, again = answer_to(server, request), answer_to(server, request)
    assert parsed == ["/metrics"]
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'gtid_audit_verdict{cluster="holed"' in first
    assert undated(again) == undated(first)
    assert re.search(rb"\r\ndate: \w{3}, ", again)


def test_a_connection_stays_open_for_the_next_scrape(server: WebServer, parsed: list[str]) -> None:
    request = scrape(closes=False)
    with closing(connected(server)) as connection:
        answers = []
        for each in (request, request, scrape(path="/healthz", closes=False), request):
            connection.sendall(each)
            answers.append(undated(one_answer(connection)))
    assert answers[0] == answers[1] == answers[3]
    assert parsed == ["/metrics", "/healthz"]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /metrics HTTP/1.0\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        scrape("X: " + "a" * 5000),
    ],
)
def test_other_requests_are_parsed_every_time(
    server: WebServer, parsed: list[str], request_bytes: bytes
) -> None:
    first, again = answer_to(server, request_bytes), answer_to(server, request_bytes)
    assert undated(first) == undated(again)
    assert len(parsed) == 2


def test_a_broken_request_is_broken_every_time(server: WebServer, parsed: list[str]) -> None:
    broken = b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"  # without Host
    assert {undated(answer_to(server, broken))[:13] for _ in range(2)} == {b"HTTP/1.1 400 "}
    assert parsed == []


def test_requests_in_pieces_and_several_at_once(server: WebServer, parsed: list[str]) -> None:
    request, kept = scrape(), scrape(closes=False)
    expected = undated(answer_to(server, request))
    with closing(connected(server)) as connection:
        connection.sendall(kept)
        kept_answer = undated(one_answer(connection))
    with closing(connected(server)) as connection:
        connection.sendall(request[:20])
        assert ask(server, "/healthz")[0] == 200  # the first part has arrived
        connection.sendall(request[20:])
        assert undated(until_end(connection)) == expected
    with closing(connected(server)) as connection:
        connection.sendall(kept + kept + request)
        answers = until_end(connection)
    assert re.sub(rb"\r\ndate: [^\r]*", b"", answers) == kept_answer * 2 + expected
    assert parsed.count("/metrics") == 6


def test_the_token_is_checked_for_every_scrape(parsed: list[str]) -> None:
    access = Access(Tokens.of([TOKEN], where="here"), is_loopback=False)
    service = audit_all(service_of(healthy()))
    request, other = (scrape(f"Authorization: Bearer {each}") for each in (TOKEN, "x" * 20))
    with web_server(service, access=access) as (server, app):
        for _ in range(2):
            assert answer_to(server, request).startswith(b"HTTP/1.1 200 ")
            assert answer_to(server, other).startswith(b"HTTP/1.1 401 ")
        assert len(parsed) == 3, "the refused one is parsed every time"
        app.access = Access(Tokens.of(["x" * 20], where="here"), is_loopback=False)
        assert answer_to(server, request).startswith(b"HTTP/1.1 401 ")
        assert answer_to(server, other).startswith(b"HTTP/1.1 200 ")


class Rendering:
    """Metrics that are made again for the next scrape, and as slowly as a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.begun, self.release = threading.Event(), threading.Event()
        self._make = SharedRendering._made_by
        monkeypatch.setattr(SharedRendering, "_made_by", staticmethod(self._slowly))
        monkeypatch.setattr(shared_rendering, "SHARED_SECONDS", -1)

    def _slowly(self, *given: object) -> bytes:
        self.count += 1
        self.begun.set()
        assert self.release.wait(SOON)
        return self._make(*given)  # type: ignore[arg-type]


def change(service: AuditService) -> None:
    """Change what the metrics are made of, and not what they show."""
    service.set_configuration(None, "a problem")


def test_what_arrives_while_metrics_are_made_is_answered_afterwards(
    parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = audit_all(service_of(healthy()))
    change(service)
    request, closing_one = scrape(closes=False), scrape()
    with web_server(service) as (server, _), closing(connected(server)) as connection:
        connection.sendall(request)
        expected = undated(one_answer(connection))
        rendering = Rendering(monkeypatch)
        service.set_configuration(None, "another problem")
        connection.sendall(request)
        assert rendering.begun.wait(SOON)
        connection.sendall(closing_one)
        assert ask(server, "/healthz")[0] == 200, "others are answered, and it has arrived"
        rendering.release.set()
        answers = until_end(connection)
    assert undated(answers).startswith(expected)
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert parsed == ["/metrics", "/healthz", "/metrics"]


def test_metrics_are_made_once_for_all_scrapes_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    service = audit_all(service_of(healthy()))
    request = scrape()
    with web_server(service) as (server, _):
        expected = answer_to(server, request)
        rendering = Rendering(monkeypatch)
        change(service)
        waiting = [connected(server) for _ in range(5)]
        for each in waiting:
            each.sendall(request)
        assert rendering.begun.wait(SOON)
        waiting.pop(2).close()  # it has no more to wait for, and the others have
        assert ask(server, "/healthz")[0] == 200
        rendering.release.set()
        answers = {undated(until_end(each)) for each in waiting}
        for each in waiting:
            each.close()
    assert rendering.count == 1
    [answer] = answers
    changed = b"gtid_audit_configuration_loaded 1.0", b"gtid_audit_configuration_loaded 0.0"
    assert answer == undated(expected).replace(*changed)


def test_metrics_are_made_again_only_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now[0])
    service, journal = audit_all(service_of(healthy(), holed("holed"))), tmp_path / "journal"
    with web_server(service, journal=journal) as (server, app):
        rendering = Rendering(monkeypatch)
        rendering.release.set()

        def is_made_again() -> bool:
            before = rendering.count
            answers = {undated(answer_to(server, scrape())) for _ in range(3)}
            assert len(answers) == 1
            return rendering.count > before

        assert is_made_again()
        assert not is_made_again(), "the same results"
        now[0] += 61
        assert not is_made_again(), "only older"
        service.audit_next()
        assert is_made_again(), "one cluster was audited"
        service.audit_next()
        assert is_made_again(), "and the other one"
        now[0] += 151
        assert is_made_again(), "all results are stale"
        assert not is_made_again()
        change(service)
        assert is_made_again(), "a file could not be loaded"
        app._facts.journal.read()
        assert not is_made_again(), "the journal was read, and is still empty"
        journal.write_text("not a journal " * 100)
        app._facts.journal.read()
        assert is_made_again(), "it cannot be read"


def test_metrics_that_cannot_be_made_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    defects: list[str] = []
    service = audit_all(service_of(healthy()))
    with web_server(service, defects=defects) as (server, _):
        request = scrape()
        expected = undated(answer_to(server, request))

        def failing(*_given: object) -> bytes:
            raise ZeroDivisionError("of the test")

        with monkeypatch.context() as patch:
            patch.setattr(shared_rendering, "SHARED_SECONDS", -1)
            patch.setattr(SharedRendering, "_made_by", staticmethod(failing))
            service.set_configuration(clock.now(), None)
            assert answer_to(server, request).startswith(b"HTTP/1.1 500 ")
        again = undated(answer_to(server, request))
        assert without_load_time(again) == without_load_time(expected)
    assert len(defects) == 1
    assert "ZeroDivisionError: of the test" in defects[0]


def test_answers_that_are_not_read_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gtid_audit.service.guarded_connections.ANSWER_SECONDS_MAX", 0.2)
    service = audit_all(service_of(*(holed(f"{number:03}") for number in range(150))))
    with web_server(service) as (server, _), socket.socket() as slow:
        request = scrape(closes=False)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(SOON)
        slow.connect(("127.0.0.1", server.address.port))
        is_ended = False
        while not is_ended:  # the socket's own limit of time ends it otherwise
            try:
                slow.sendall(request)
            except (BrokenPipeError, ConnectionResetError):
                is_ended = True
        assert ask(server, "/healthz")[0] == 200


def test_only_so_many_requests_are_remembered() -> None:
    async def never(_accept: str) -> object:
        raise AssertionError

    memory = ScrapeMemory(ScrapeSource(lambda _: True, lambda _: None, never))  # type: ignore[arg-type]
    requests = [scrape(path=f"/metrics?{number}") for number in range(REMEMBERED_MAX + 1)]
    for each in requests:
        memory.note(
            each, method="GET", path="/metrics", http_version="1.1", headers=[], closes=True
        )
    assert memory.find(requests[0]) is None
    assert all(memory.find(each) is not None for each in requests[1:])
    assert TOKEN not in repr(memory.find(requests[1]))
