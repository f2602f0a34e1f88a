"""What a server may get from us, and how much it may send: tried by servers that are not honest."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from binlog.quoting import quote_string
from compose.native.server import Server
from tests.fake_server import OK, PASSWORD, SALT, Peer, column, fake_server
from topology.adapters.connection import (
    ANSWER_BYTES_MAX,
    HANDSHAKE_BYTES_MAX,
    Connection,
    connect,
)
from topology.adapters.connection_errors import AnswerTooLong, NotMysql, PasswordNotSent
from topology.adapters.mysql import MysqlReader
from topology.readings.snapshot import ServerSnapshot, UnreadReason
from topology.readings.target import Secret, ServerTarget

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
LIMIT = f"the limit of {ANSWER_BYTES_MAX:,} bytes"
QUIT = b"\x01"
FULL_AUTHENTICATION = b"\x01\x04"


def switch(plugin: bytes) -> bytes:
    return b"\xfe" + plugin + b"\0" + SALT + b"\0"


def clear_password(peer: Peer) -> None:
    peer.greet()
    peer.send(switch(b"mysql_clear_password"))
    peer.receive()


def clear_password_at_once(peer: Peer) -> None:
    peer.greet("mysql_clear_password")
    peer.send(switch(b"mysql_clear_password"))
    peer.receive()


def dialog(peer: Peer) -> None:
    peer.greet()
    peer.send(b"\xfedialog\0\x04Password: ")
    peer.receive()


def old_password(peer: Peer) -> None:
    peer.greet()
    peer.send(switch(b"mysql_old_password"))
    peer.receive()


def caching_sha2(peer: Peer) -> None:
    peer.greet("caching_sha2_password")
    peer.send(FULL_AUTHENTICATION)
    peer.receive()  # the request for the key
    peer.send(b"\x01" + PEM)
    peer.receive()


def caching_sha2_by_switch(peer: Peer) -> None:
    peer.greet()
    peer.send(switch(b"caching_sha2_password"))
    peer.receive()
    peer.send(FULL_AUTHENTICATION)
    peer.receive()
    peer.send(b"\x01" + PEM)
    peer.receive()


def sha256(peer: Peer) -> None:
    peer.greet("sha256_password")
    peer.send(b"\x01" + PEM)
    peer.receive()


def sha256_by_switch(peer: Peer) -> None:
    peer.greet()
    peer.send(switch(b"sha256_password"))
    peer.receive()
    peer.send(b"\x01" + PEM)
    peer.receive()


ASKS: list[tuple[Callable[[Peer], None], str]] = [
    (clear_password, "enable_cleartext_plugin"),
    (clear_password_at_once, "enable_cleartext_plugin"),
    (dialog, "enable_cleartext_plugin"),
    (old_password, "enable_cleartext_plugin"),
    (caching_sha2, "get_server_public_key"),
    (caching_sha2_by_switch, "get_server_public_key"),
    (sha256, "get_server_public_key"),
    (sha256_by_switch, "get_server_public_key"),
]


@pytest.mark.parametrize(("ask", "option"), ASKS, ids=[ask.__name__ for ask, _ in ASKS])
def test_a_server_without_tls_never_gets_the_password(
    ask: Callable[[Peer], None], option: str
) -> None:
    with fake_server(ask) as server, pytest.raises(PasswordNotSent) as refused:
        connect(server.target(), timeout_seconds_max=3.0)
    text = refused.value.args[1]
    assert "the password was not sent" in text
    assert f"{option}=1" in text
    assert "ssl_ca=FILE or ssl=required" in text
    assert PASSWORD.encode() not in server.received
    assert not any(is_decryptable(server.received[at : at + 256]) for at in range(400))


@pytest.mark.parametrize(("ask", "option"), ASKS, ids=[ask.__name__ for ask, _ in ASKS])
def test_the_option_of_that_name_sends_it(ask: Callable[[Peer], None], option: str) -> None:
    """The tests above see something only if the server would get the password otherwise."""
    is_key = option == "get_server_public_key"
    with fake_server(ask) as server:
        target = server.target(get_server_public_key=is_key, enable_cleartext_plugin=not is_key)
        with pytest.raises(pymysql.MySQLError) as lost:
            connect(target, timeout_seconds_max=3.0)
    assert not isinstance(lost.value, PasswordNotSent)
    if is_key:
        assert is_decryptable(server.received[-256:])
    elif ask is not old_password:
        assert PASSWORD.encode() + b"\0" in server.received


def is_decryptable(sent: bytes) -> bool:
    sha1 = hashes.SHA1()
    try:
        mixed = KEY.decrypt(sent, padding.OAEP(padding.MGF1(sha1), sha1, None))
    except ValueError:
        return False
    whole = bytes(byte ^ SALT[at % len(SALT)] for at, byte in enumerate(mixed))
    return whole == PASSWORD.encode() + b"\0"


@pytest.mark.parametrize("ask", [clear_password, caching_sha2_by_switch])
def test_what_was_not_sent_is_reported_as_refused(ask: Callable[[Peer], None]) -> None:
    with fake_server(ask) as server:
        reading = read(server.target())
    [fact] = reading.unread
    assert (fact.fact, fact.reason) == ("connection", UnreadReason.REFUSED)
    assert "the password was not sent" in fact.detail
    assert PASSWORD not in fact.detail


def test_an_empty_password_needs_no_protection() -> None:
    def ask(peer: Peer) -> None:
        peer.greet("caching_sha2_password")
        peer.send(switch(b"mysql_clear_password"))
        assert peer.receive() == b"\0"
        peer.send(OK)
        while peer.receive():
            peer.send(OK)

    with fake_server(ask) as server:
        target = ServerTarget("fake", "127.0.0.1", server.port, "auditor")
        connect(target, timeout_seconds_max=3.0).close()


def test_a_real_server_gets_it_by_tls_by_a_socket_and_by_the_fast_path(mysql97: Server) -> None:
    """Full authentication by TLS fills the server's cache; then a scramble suffices without TLS."""
    user = "cleartext_test"
    password = "not the fleet's"
    mysql97.execute(
        f"CREATE USER {user} IDENTIFIED WITH caching_sha2_password BY {quote_string(password)}"
    )
    target = ServerTarget("a", mysql97.host, mysql97.port, user, Secret(password))
    without_tls = replace(target, port=mysql97.port)
    try:
        with pytest.raises(PasswordNotSent, match="key of its own"):
            connect_plainly(without_tls)
        connect(target, timeout_seconds_max=5.0).close()
        connect_plainly(without_tls).close()
        mysql97.execute("FLUSH PRIVILEGES")  # empties the cache
        with pytest.raises(PasswordNotSent, match="key of its own"):
            connect_plainly(without_tls)
        connect_plainly(replace(without_tls, get_server_public_key=True)).close()
    finally:
        mysql97.execute(f"DROP USER {user}")


def connect_plainly(target: ServerTarget) -> Connection:
    """Connect as to a server that offers no TLS: the same server, through a forwarded port."""
    with fake_server(lambda peer: forward_without_tls(peer, target)) as server:
        return connect(replace(target, port=server.port), timeout_seconds_max=5.0)


def forward_without_tls(peer: Peer, target: ServerTarget) -> None:
    """Forward both ways, and take the offer of TLS out of the greeting."""
    with socket.create_connection((target.host, target.port)) as real:
        greeting = bytearray(real.recv(4096))
        at = greeting.index(b"\0", 5) + 1 + 4 + 8 + 1  # behind version, thread and salt
        greeting[at + 1] &= ~0x08  # CLIENT_SSL is bit 11
        peer.socket.sendall(greeting)

        def back() -> None:
            with suppress(OSError):
                while piece := real.recv(4096):
                    peer.socket.sendall(piece)

        threading.Thread(target=back, daemon=True).start()
        while piece := peer.socket.recv(4096):
            real.sendall(piece)


# -- how much -------------------------------------------------------------------------------------


def endless_rows(peer: Peer) -> None:
    peer.let_in()
    peer.receive()
    peer.send(b"\x01", column("version"), b"\xfe\0\0\2\0")
    heap = b"".join(
        b"\x01\0\0" + bytes([number % 256]) + b"\xfb"
        for number in range(peer.sequence, peer.sequence + 256)
    )
    while True:
        peer.socket.sendall(heap)


def endless_columns(peer: Peer) -> None:
    peer.let_in()
    peer.receive()
    peer.send(b"\xfd\xff\xff\xff")
    while True:
        peer.send(column("version"))


def wide_rows(peer: Peer) -> None:
    peer.let_in()
    peer.receive()
    peer.send(b"\xfc\0\x10", *[column(f"c{number}") for number in range(4096)], b"\xfe\0\0\2\0")
    while True:
        peer.send(b"\xfb" * 4096)


def one_long_value(peer: Peer) -> None:
    peer.let_in()
    peer.receive()
    peer.send(b"\x01", column("version"), b"\xfe\0\0\2\0")
    piece = bytes(0xFFFFFF)
    peer.send(b"\xfe" + (1 << 30).to_bytes(8, "little") + piece[9:])
    while True:
        peer.send(piece)


def one_value_within_the_limit(peer: Peer) -> None:
    """All that the limit allows, with a character that takes four bytes for each in memory."""
    peer.let_in()
    peer.receive()
    peer.send(b"\x01", column("version"), b"\xfe\0\0\2\0")
    length = ANSWER_BYTES_MAX - 8 * 1024
    text = b"a" * (length - 4) + "\U0001f600".encode()
    whole = b"\xfe" + length.to_bytes(8, "little") + text
    for at in range(0, len(whole), 0xFFFFFF):
        peer.send(whole[at : at + 0xFFFFFF])
    peer.send(b"\xfe\0\0\2\0")


def endless_greeting(peer: Peer) -> None:
    piece = bytes(0xFFFFFF)
    while True:
        peer.send(piece)


def endless_authentication(peer: Peer) -> None:
    peer.greet()
    peer.send(b"\xfedialog\0\x04Password: ")
    while peer.receive():
        peer.send(b"\x04Password: ")


# Peak memory of a process that has nothing to do but this: 45 MiB before it begins.
MEASURED = """
import sys
from pathlib import Path
from topology.adapters.mysql import MysqlReader
from topology.readings.target import ServerTarget
target = ServerTarget("fake", "127.0.0.1", int(sys.argv[1]), "auditor")
reading = MysqlReader(target, cluster="c", timeout_seconds_max=30.0).read(phase=1)
status = Path("/proc/self/status").read_text().splitlines()
peak = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
print(peak, *[f"{u.fact}: {u.detail}" for u in reading.unread])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("serve", "said", "mib_max"),
    [
        (endless_rows, f"version: the server's answer exceeds {LIMIT}", 250),
        (endless_columns, "a result of", 80),
        (wide_rows, f"exceeds {LIMIT}", 250),
        (one_long_value, f"exceeds {LIMIT}", 250),
        (one_value_within_the_limit, "", 600),
        (endless_greeting, "not a MySQL server", 80),
        (
            endless_authentication,
            f"what the server sent while connecting exceeds the limit of {HANDSHAKE_BYTES_MAX:,}",
            80,
        ),
    ],
)
def test_what_a_server_sends_is_bounded(
    serve: Callable[[Peer], None], said: str, mib_max: int
) -> None:
    with fake_server(serve) as server:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(server.port)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            timeout=240,
        )
    peak, _, text = done.stdout.partition(" ")
    assert said in text, "the limit ends it, and not the time"
    assert int(peak) <= mib_max


def test_one_answer_that_is_too_long_costs_only_its_fact() -> None:
    connections = []

    def serve(peer: Peer) -> None:
        connections.append(peer)
        peer.let_in()
        while statement := peer.receive():
            if b"@@GLOBAL.version" in statement:
                peer.answer(["version", "version_comment"], [["9.7.4", ""]])
            elif b"gtid_owned" in statement and len(connections) == 1:
                endless_values(peer)
            else:
                peer.send(OK)

    def endless_values(peer: Peer) -> None:
        peer.send(b"\x01", column("a"), b"\xfe\0\0\2\0")
        while True:
            peer.send(b"\xfe" + (60_000).to_bytes(8, "little") + bytes(60_000))

    with fake_server(serve) as server:
        reading = read(server.target(), seconds=20.0)
    assert reading.version_text == "9.7.4"
    [fact] = reading.unread
    assert (fact.fact, fact.reason) == ("gtid_executed", UnreadReason.ERROR)
    assert f"{ANSWER_BYTES_MAX:,} bytes" in fact.detail


@pytest.mark.long
@pytest.mark.parametrize("pause", [0.05, 0.5])
def test_a_server_that_sends_byte_by_byte_costs_its_time_once(pause: float) -> None:
    def drip(peer: Peer) -> None:
        peer.let_in()
        peer.receive()
        for byte in b"\x01\0\0\x01\x01" + b"\x30\0\0\x02" * 500:
            peer.socket.sendall(bytes([byte]))
            time.sleep(pause)

    begun = time.monotonic()
    with fake_server(drip) as server:
        reading = read(server.target(), seconds=1.0)
    assert time.monotonic() - begun < 3.0
    [fact] = reading.unread
    assert (fact.fact, fact.reason) == ("connection", UnreadReason.TIMEOUT)


# -- what is no MySQL server, or answers as none does --------------------------------------------


def ssh(peer: Peer) -> None:
    peer.socket.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    peer.receive()


def smtp(peer: Peer) -> None:
    peer.socket.sendall(b"220 mail.example ESMTP\r\n")
    peer.receive()


def http(peer: Peer) -> None:
    peer.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def x_protocol(peer: Peer) -> None:
    peer.socket.sendall(b"\x05\0\0\0\x0b\x08\x05\x1a\0")
    peer.receive()


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (ssh, "it sent 'SSH-2.0-OpenSSH_9.2p1 Debian-2'"),
        (smtp, "it sent '220 mail.example ESMTP'"),
        (http, "it sent 'HTTP/1.1 400 Bad Request'"),
        (x_protocol, "the port uses X Protocol"),
    ],
)
def test_another_service_is_not_a_mysql_server(serve: Callable[[Peer], None], said: str) -> None:
    with fake_server(serve) as server:
        with pytest.raises(NotMysql, match="not a MySQL server"):
            connect(server.target(), timeout_seconds_max=3.0)
        [fact] = read(server.target()).unread
    assert (fact.fact, fact.reason) == ("connection", UnreadReason.UNREACHABLE)
    assert fact.detail == f"not a MySQL server: {said}" or said in fact.detail


def silent(peer: Peer) -> None:
    peer.receive()


@pytest.mark.long
def test_a_port_that_says_nothing_may_be_another_service() -> None:
    with fake_server(silent) as server:
        [fact] = read(server.target(), seconds=1.0).unread
    assert (fact.fact, fact.reason) == ("connection", UnreadReason.TIMEOUT)
    assert "no greeting of a MySQL server" in fact.detail


def healthy(peer: Peer, statement: bytes, *, odd: bytes, answer: Callable[[Peer], None]) -> None:
    """Answer as a server without channels does, but for one statement."""
    if odd in statement:
        answer(peer)
    elif b"@@GLOBAL.version" in statement:
        peer.answer(["version", "version_comment"], [["9.7.4", ""]])
    elif b"gtid_owned" in statement:
        names = ["gtid_owned", "gtid_purged", "gtid_executed", "server_uuid", "server_id"]
        uuid = "aaaaaaaa-0000-0000-0000-000000000000"
        peer.answer(
            [*names, "gtid_mode", "server_clock"],
            [["", "", "", uuid, "1", "ON", "2026-01-02 12:00:00"]],
        )
    elif b"GLOBAL VARIABLES" in statement:
        peer.answer(["Variable_name", "Value"], [["gtid_mode", "ON"]])
    elif b"variables_info" in statement:
        peer.answer(["name", "source"], [["gtid_mode", "COMPILED"]])
    elif b"REPLICA STATUS" in statement:
        peer.answer(["Source_Host"], [])
    elif b"worker" in statement:
        peer.answer(["worker_id"], [])
    elif b"LOG STATUS" in statement:
        peer.answer(["File", "Position"], [["binlog.000001", "4"]])
    elif b"Uptime" in statement:
        peer.answer(["Variable_name", "Value"], [["Uptime", "9"]])
    elif b"BINARY LOGS" in statement:
        peer.answer(["Log_name", "File_size"], [["binlog.000001", "4"]])
    else:
        assert statement == QUIT


ODD: dict[str, bytes] = {
    "version": b"@@GLOBAL.version",
    "gtid_executed": b"gtid_owned",
    "channels": b"REPLICA STATUS",
    "log_end": b"LOG STATUS",
    "uptime_seconds": b"Uptime",
    "binary_logs": b"BINARY LOGS",
    "settings": b"GLOBAL VARIABLES",
}
ANSWERS: dict[str, Callable[[Peer], None]] = {
    "OK": Peer.ok,
    "other columns": lambda peer: peer.answer(["a", "b"], [["1", "2"]]),
    "other columns, no rows": lambda peer: peer.answer(["a", "b"], []),
    "NULL": lambda peer: peer.answer(["Source_Host", "File", "Log_name", "Value"], [[None] * 4]),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("fact", ODD)
@pytest.mark.parametrize("several", [True, False], ids=["in one text", "one by one"])
def test_an_odd_answer_costs_its_fact_and_no_more(fact: str, answer: str, *, several: bool) -> None:
    def serve(peer: Peer) -> None:
        peer.let_in()
        while received := peer.receive():
            statements = received.split(b";") if several else [received]
            for number, statement in enumerate(statements, start=1):
                peer.more = number < len(statements)
                healthy(peer, statement, odd=ODD[fact], answer=ANSWERS[answer])

    with fake_server(serve) as server:
        reading = read(server.target())
    unread = {each.fact for each in reading.unread}
    assert unread == {fact}
    assert getattr(reading, fact) is None


def read(target: ServerTarget, *, seconds: float = 3.0) -> ServerSnapshot:
    reader = MysqlReader(target, cluster="c", timeout_seconds_max=seconds)
    try:
        return reader.read(phase=1)
    finally:
        reader.close()


def test_too_long_is_an_error_of_the_connection() -> None:
    error = AnswerTooLong(limit_bytes=5_000, what="the server's answer")
    assert isinstance(error, pymysql.MySQLError)
    assert error.args[1] == "the server's answer exceeds the limit of 5,000 bytes"
