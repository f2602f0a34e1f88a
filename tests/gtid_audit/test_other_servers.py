"""`binlog` and its like on a server without MySQL's GTIDs: it is named, and no privilege is asked."""

import json
from collections.abc import Callable

import pytest

from compose.native.installation import ProviderMissing
from compose.native.mariadb_server import provision_mariadb, running_mariadb
from gtid_audit.cli import run
from tests.fake_server import OK, Peer, fake_server

SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"
COMMANDS: list[tuple[str, ...]] = [
    ("binlog", "show", SET, "{dsn}"),
    ("binlog", "show", SET, "{dsn}", "--undo", "--schema-from", "{dsn}"),
    ("binlog", "scan", "{dsn}"),
    ("binlog", "locate", SET, "{dsn}"),
    ("binlog", "compare", "{dsn}", "{dsn}"),
    ("binlog", "schema", "follow", "{dsn}", "--store", "{tmp}/store"),
]
NAMES = [" ".join(each[:2]) for each in COMMANDS]
MARIADB = "is a MariaDB server: MariaDB 10.11.18-MariaDB has no MySQL GTIDs\n"


def named(command: tuple[str, ...], dsn: str, folder: object) -> list[str]:
    return [word.format(dsn=dsn, tmp=folder) for word in command]


def serving(greeting: str, version: str, comment: str = "") -> Callable[[Peer], None]:
    """Serve the version, and nothing else: any other statement gets no answer."""

    def serve(peer: Peer) -> None:
        peer.greet(version=greeting)
        peer.send(OK)
        peer.receive()  # SET NAMES
        peer.send(OK)
        if b"@@GLOBAL.version" in peer.receive():
            row: list[str | None] = [version, comment, "/usr/"]
            peer.answer(["version", "version_comment", "basedir"], [row])
            peer.receive()

    return serve


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_every_command_names_the_server_and_ends_with_unknown(
    command: tuple[str, ...], tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(serving("5.5.5-10.11.18-MariaDB", "")) as server:
        dsn = f"mysql://u@127.0.0.1:{server.port}/"
        status = run([*named(command, dsn, tmp_path), "--timeout", "5"])
    assert status == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith(f"gtid-audit: 127.0.0.1:{server.port} {MARIADB}")
    assert b"gtid" not in server.received.replace(b"gtid-audit", b"").lower()


@pytest.mark.parametrize(
    ("greeting", "version", "comment", "said"),
    [
        ("9.7.4", "10.11.18-MariaDB", "", f" {MARIADB}"),  # behind a gateway with its own greeting
        ("8.0.11-TiDB-v7.5.0", "", "", " is a TiDB server: TiDB 8.0.11-TiDB-v7.5.0 has no MySQL"),
        ("8.0.40-Vitess", "", "", " is a Vitess gateway: Vitess 8.0.40-Vitess is a gateway: each"),
        ("8.0.40", "8.0.40", "PlanetScale", " is a Vitess gateway: Vitess 8.0.40 is a gateway"),
        ("5.5.62-log", "", "", ": MySQL 5.5.62-log has no MySQL GTIDs\n"),
    ],
)
def test_the_greeting_or_the_version_shows_the_kind(
    greeting: str, version: str, comment: str, said: str, *, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(serving(greeting, version, comment)) as server:
        dsn = f"mysql://u@127.0.0.1:{server.port}/"
        assert run(["binlog", "locate", SET, dsn, "--timeout", "5"]) == 3
    assert f"gtid-audit: 127.0.0.1:{server.port}{said}" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["5.6.5-m8", "9.7.4", "8.0.35-27 Percona", "nine"])
def test_a_server_with_gtids_is_asked_for_them(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one whose version says nothing: its answers decide."""
    with fake_server(serving("9.7.4", version)) as server:
        dsn = f"mysql://u@127.0.0.1:{server.port}/"
        assert run(["binlog", "locate", SET, dsn, "--timeout", "5"]) == 3
    assert b"@@GLOBAL.gtid_executed" in server.received
    assert "the connection broke" in capsys.readouterr().err


def test_an_answer_that_is_no_version_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def serve(peer: Peer) -> None:
        peer.let_in()
        peer.receive()
        peer.ok()

    with fake_server(serve) as server:
        dsn = f"mysql://u@127.0.0.1:{server.port}/"
        assert run(["binlog", "locate", SET, dsn, "--timeout", "5"]) == 3
    assert "the server's answer about its version cannot be read" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.mysql
def test_a_real_mariadb_is_named(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        prefix = provision_mariadb()
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    with running_mariadb(prefix) as dsn:
        for command in COMMANDS:
            assert run(named(command, dsn, tmp_path)) == 3, command
            said = capsys.readouterr()
            assert said.out == "", command
            assert " is a MariaDB server: MariaDB " in said.err, command
            assert said.err.endswith(" has no MySQL GTIDs\n"), command
            assert "1193" not in said.err, command
        assert run(["audit", dsn, "--json"]) == 3
        [found] = json.loads(capsys.readouterr().out)["findings"]
        assert (found["code"], "is a MariaDB server" in found["explanation"]) == ("U4", True)
