"""The HTTP side of the service, over real connections: paths, access, TLS, limits."""

import base64
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit.exits import UsageProblem
from gtid_audit.service import guarded_connections, web_app
from gtid_audit.service.access import Access, Tokens, read_tokens
from gtid_audit.service.certificate import CertificateFiles
from gtid_audit.service.cluster_results import ServiceResults
from gtid_audit.service.listening import Address, parse_address
from gtid_audit.service.procedure_metrics import SERVICE_METRICS
from gtid_audit.service.procedure_source import ProceduresRead
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.web import WebServer
from tests.gtid_audit.build import healthy, holed
from tests.gtid_audit.served import SOON, ask, audit_all, service_of, web_server

pytestmark = pytest.mark.long  # real connections, which wait

TOKEN = "correct-horse-battery-staple"
EVERY_PATH = ("/", "/metrics", "/healthz", "/readyz", "/api/v1/findings", "/nothing")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:9717", Address("::1", 9717)),
        ("localhost:65535", Address("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "x", ":1", "h:", "h:65536", "h:-1", "h:x", "h:\u0661"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageProblem, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_which_addresses_other_machines_reach(host: str, is_loopback: bool) -> None:
    assert Address(host, 1).is_loopback is is_loopback


@pytest.fixture
def service() -> AuditService:
    return service_of(healthy(), holed("holed"))


@pytest.fixture
def served(service: AuditService) -> Iterator[tuple[AuditService, WebServer]]:
    with web_server(service) as (server, _):
        yield service, server


def test_metrics_health_and_readiness(served: tuple[AuditService, WebServer]) -> None:
    service, server = served
    assert ask(server, "/healthz")[0] == 200
    status, _, body = ask(server, "/readyz")
    assert (status, body) == (503, "not ready: no audit has ended of holed, pair\n")
    names = {each.name for each in text_string_to_metric_families(ask(server, "/metrics")[2])}
    assert set(SERVICE_METRICS) <= names
    assert "gtid_audit_verdict" not in names
    audit_all(service)
    status, _, body = ask(server, "/healthz")
    assert status == 200
    assert body.startswith("the last audit finished 0 s ago")
    assert ask(server, "/readyz")[::2] == (200, "ready: 2 clusters\n")
    time.sleep(0.6)  # scrapes that follow each other share one rendering
    status, headers, body = ask(server, "/metrics?x=1")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    names = {each.name for each in text_string_to_metric_families(body)}
    assert {"gtid_audit_verdict", "gtid_audit_findings", *SERVICE_METRICS} <= names
    assert headers["server"] == "gtid-audit"


def test_openmetrics_if_it_is_requested(served: tuple[AuditService, WebServer]) -> None:
    service, server = served
    audit_all(service)
    accept = "application/openmetrics-text; version=1.0.0"
    _, headers, body = ask(server, "/metrics", Accept=accept)
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


def test_other_paths_and_methods(served: tuple[AuditService, WebServer]) -> None:
    _, server = served
    assert ask(server, "/nothing")[0] == 404
    assert ask(server, "/healthz/")[0] == 404
    for path in ("/metrics", "/", "/api/v1/clusters"):
        assert ask(server, path, method="HEAD")[::2] == (200, "")
        for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"):
            assert ask(server, path, method=method)[0] == 405
    assert ask(server, "/metrics", Connection="Upgrade", Upgrade="websocket")[0] == 200


def test_a_taken_port_is_reported(served: tuple[AuditService, WebServer]) -> None:
    with pytest.raises(UsageProblem, match=r"cannot listen on 127\.0\.0\.1:"):
        WebServer(served[1].address)
    with pytest.raises(UsageProblem, match="cannot listen on"):
        WebServer(Address("no-such-host.invalid", 1))


def test_a_defect_is_reported_and_shown_without_details() -> None:
    service, defects = service_of(healthy()), list[str]()
    with web_server(service, defects=defects) as (server, _):
        service._results = None  # type: ignore[assignment]
        status, _, body = ask(server, "/readyz")
    assert status == 500
    assert "the log has the reason" in body
    assert any("AttributeError" in each for each in defects)


def test_the_page_shows_the_worst_first_and_escapes(tmp_path: Path) -> None:
    name = "<script>alert('x')</script>"
    service = audit_all(service_of(healthy("a"), holed(name)))
    service.set_configuration(None, "fleet.yaml, line 3: <b>")
    with web_server(service) as (server, _):
        status, headers, body = ask(server, "/")
    assert status == 200
    assert "<script>" not in body
    assert "<b>" not in body
    shown = body.index("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;")
    assert shown < body.index("<td>a<td>")
    assert "H1" in body
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert not {"src=", "href=", "url(", "http://", "https://"} & set(body.split())


# -- access -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "statuses"),
    [
        (f"Bearer {TOKEN}", (200, 200, 200, 200, 200, 404)),
        (f"bearer {TOKEN} ", (200, 200, 200, 200, 200, 404)),
        ("Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode(), (200,) * 5 + (404,)),
        ("", (401, 401, 200, 200, 401, 401)),
        (f"Bearer {TOKEN}x", (401, 401, 200, 200, 401, 401)),
        (f"Bearer {TOKEN[:-1]}", (401, 401, 200, 200, 401, 401)),
        ("Bearer", (401, 401, 200, 200, 401, 401)),
        (f"Token {TOKEN}", (401, 401, 200, 200, 401, 401)),
        ("Basic !", (401, 401, 200, 200, 401, 401)),
        ("Basic " + base64.b64encode(TOKEN.encode()).decode(), (401, 401, 200, 200, 401, 401)),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), (401, 401, 200, 200, 401, 401)),
        ("Bearer \xe4\xf6\xfc", (401, 401, 200, 200, 401, 401)),
    ],
)
def test_what_a_token_opens(authorization: str, statuses: tuple[int, ...]) -> None:
    service = audit_all(service_of(healthy()))
    tokens = Tokens.of(["another-token-of-16-characters", TOKEN], where="here")
    with web_server(service, access=Access(tokens, is_loopback=False)) as (server, _):
        found = [ask(server, path, Authorization=authorization) for path in EVERY_PATH]
    assert tuple(each[0] for each in found) == statuses
    challenges = {each[1].get("www-authenticate") for each in found if each[0] == 401}
    assert challenges <= {'Bearer, Basic realm="gtid-audit", charset="UTF-8"'}
    reasons = statuses[0] == 200
    assert found[3][2] == ("ready: 1 cluster\n" if reasons else "ok\n")


def test_the_runbook_is_open() -> None:
    access = Access(Tokens.of([TOKEN], where="here"), is_loopback=False)
    with web_server(service_of(healthy()), access=access) as (server, _):
        status, headers, body = ask(server, "/runbook")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Runbook of gtid-audit" in body


def test_without_a_token_other_machines_see_numbers_only() -> None:
    service = audit_all(service_of(healthy()))
    with web_server(service, access=Access(None, is_loopback=False)) as (server, _):
        assert [ask(server, path)[0] for path in EVERY_PATH] == [403, 200, 200, 200, 403, 403]


def test_where_tokens_come_from(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{TOKEN}\n\nsecond-token-of-the-file\n")
    file.chmod(0o640)
    environment = {"GTID_AUDIT_TOKEN": "token-of-the-environment"}
    assert read_tokens(None, {}) is None
    of_environment, of_file = read_tokens(None, environment), read_tokens(file, environment)
    assert of_environment is not None
    assert of_environment.accept("token-of-the-environment")
    assert of_file is not None
    assert [of_file.accept(each) for each in (TOKEN, "second-token-of-the-file", "x", "")] == [
        *(True, True, False, False)
    ]
    assert TOKEN not in repr(of_file)


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        (b"", 0o600, "no token"),
        (b"short", 0o600, "at least 16 characters"),
        (b"m\xc3\xbctter-und-kinder-alle", 0o600, "printable ASCII"),
        (TOKEN.encode(), 0o644, "every user of this machine"),
    ],
)
def test_unusable_token_files(tmp_path: Path, content: bytes, mode: int, problem: str) -> None:
    file = tmp_path / "tokens"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(UsageProblem, match=problem) as raised:
        read_tokens(file, {})
    assert TOKEN not in str(raised.value)
    with pytest.raises(UsageProblem, match="No such file"):
        read_tokens(tmp_path / "none", {})


# -- TLS ----------------------------------------------------------------------------------------


def certificate_in(folder: Path, name: str) -> CertificateFiles:
    """Write a certificate that names itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = CertificateFiles(folder / "cert.pem", folder / "key.pem")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def name_presented(server: WebServer) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", server.address.port), timeout=SOON) as plain,
        context.wrap_socket(plain) as wrapped,
    ):
        presented = wrapped.getpeercert(binary_form=True)
        assert presented is not None
        wrapped.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert wrapped.recv(100).startswith(b"HTTP/1.1 200")
    names = x509.load_der_x509_certificate(presented).subject
    return str(names.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_a_certificate_is_replaced_and_a_bad_one_is_not_used(tmp_path: Path) -> None:
    files = certificate_in(tmp_path, "first")
    context = files.new_context()
    with web_server(service_of(healthy()), tls=context) as (server, _):
        assert server.url.startswith("https://")
        assert name_presented(server) == "first"
        certificate_in(tmp_path, "second")
        files.load_again(context)
        assert name_presented(server) == "second"
        other = tmp_path / "other"
        other.mkdir()
        certificate_in(other, "third")
        (tmp_path / "cert.pem").write_bytes((other / "cert.pem").read_bytes())  # not of this key
        with pytest.raises(UsageProblem, match="not a certificate and its key"):
            files.load_again(context)
        files.key.unlink()
        with pytest.raises(UsageProblem, match=r"key\.pem: No such file"):
            files.load_again(context)
        assert name_presented(server) == "second"


def test_a_key_with_a_passphrase_is_refused_without_a_question(tmp_path: Path) -> None:
    files = certificate_in(tmp_path, "first")
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(UsageProblem, match="not a certificate and its key"):
        files.new_context()


@pytest.mark.parametrize(("cert", "key"), [(Path("c"), None), (None, Path("k"))])
def test_half_a_certificate(cert: Path | None, key: Path | None) -> None:
    with pytest.raises(UsageProblem, match="--tls-cert and --tls-key"):
        CertificateFiles.of(cert, key)


# -- limits -------------------------------------------------------------------------------------


def connected(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.address.port), timeout=SOON)


def received_from(connection: socket.socket) -> bytes:
    """Return what the server sent; nothing once it has ended the connection."""
    try:
        return connection.recv(1 << 16)
    except ConnectionResetError:
        return b""


def is_refused(connection: socket.socket, part: bytes) -> bool:
    """Send a part of a request again and again, until the server has ended the connection."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        try:
            connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(0.02)
    return False


def is_ended(connection: socket.socket) -> bool:
    """Wait until the server has ended a connection; return whether it sent nothing more."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("begin", "answer"),
    [
        (b"", b""),
        (b"GET /metrics", b""),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n", b""),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12", b"HTTP/1.1 405 "),
    ],
)
def test_a_request_that_does_not_arrive_is_given_up(
    begin: bytes, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_connections, "REQUEST_SECONDS_MAX", 0.2)
    with web_server(service_of(healthy())) as (server, _), connected(server) as slow:
        slow.sendall(begin)
        received = b""
        while part := received_from(slow):
            received += part
        assert received[: len(answer) or 1] == answer
        assert ask(server, "/healthz")[0] == 200


def test_a_client_that_sends_a_byte_at_a_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_connections, "REQUEST_SECONDS_MAX", 0.3)
    with web_server(service_of(healthy())) as (server, _), connected(server) as slow:
        assert is_refused(slow, b"G")


def test_an_answer_that_is_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_connections, "ANSWER_SECONDS_MAX", 0.2)
    service = audit_all(service_of(*(holed(f"{number:03}") for number in range(150))))
    with web_server(service) as (server, _), socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.address.port))
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
        assert is_refused(slow, b"G")
        assert ask(server, "/healthz")[0] == 200


def test_too_many_connections_end_the_one_that_waits_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded_connections, "CONNECTIONS_MAX", 5)
    monkeypatch.setattr(guarded_connections, "REQUEST_SECONDS_MAX", 10 * SOON)
    with web_server(service_of(healthy())) as (server, _):
        waiting = [connected(server) for _ in range(20)]
        assert ask(server, "/healthz")[0] == 200
        assert all(is_ended(each) for each in waiting[:15])
        for each in waiting:
            each.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",  # without Host
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    ],
)
def test_a_broken_request_is_refused_and_logged_nowhere(
    request_bytes: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with web_server(service_of(healthy())) as (server, _):
        with connected(server) as broken:
            broken.sendall(request_bytes)
            broken.shutdown(socket.SHUT_WR)
            assert broken.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 4", b""))
        assert ask(server, "/healthz")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_the_web_server_leaves_signals_alone() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with web_server(service_of(healthy())) as (server, _):
        assert ask(server, "/healthz")[0] == 200
        assert {number: signal.getsignal(number) for number in before} == before


def test_a_page_that_takes_long_does_not_keep_a_scrape_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages are made in threads."""
    began, go_on = threading.Event(), threading.Event()
    service = audit_all(service_of(healthy()))

    def slow_page(found: ServiceResults, _procedures: ProceduresRead) -> str:
        began.set()
        assert go_on.wait(SOON)
        return f"{len(found.clusters)}"

    monkeypatch.setattr(web_app, "page", slow_page)
    with web_server(service) as (server, _):
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(ask(server, "/")[2]))
        thread.start()
        assert began.wait(SOON)
        assert ask(server, "/metrics")[0] == 200
        assert answers == []
        go_on.set()
        thread.join(SOON)
        assert answers == ["1"]
