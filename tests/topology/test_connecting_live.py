"""Connecting to real servers as the mysql client does, with the client as the oracle."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql
import pytest

from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.certificates import Authority
from tests.gtid_audit.build import run_cli
from topology.adapters.connection import connect
from topology.adapters.connection_errors import TlsTooOld
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.targets import Accounts
from topology.readings.target import ServerTarget

PAGE = Path(__file__).parents[2] / "docs/connecting.md"
PASSWORD = "a password of the test's account"
TLS, PLAIN, REFUSED = "tls", "plain", "refused"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def certified(server: Server, authority: Authority, *names: str) -> Iterator[None]:
    """Replace the certificate of a running server (8.0.16 or later) for a while."""
    settings = ("ssl_ca", "ssl_cert", "ssl_key")
    [before] = server.query(f"SELECT {', '.join(f'@@{name}' for name in settings)}")
    made = (authority.file, *authority.certify("server", names=names))
    # A server in a container sees its own folder only.
    after = tuple(str(shutil.copy(each, server.folder)) for each in made)

    def load(values: tuple[str, ...]) -> None:
        pairs = zip(settings, values, strict=True)
        server.execute(*(f"SET GLOBAL {name} = '{value}'" for name, value in pairs))
        server.execute("ALTER INSTANCE RELOAD TLS")

    load(after)
    try:
        yield
    finally:
        load(before)


def ours(file: Path, server: Server, query: str = "") -> str:
    """Return how we connect with the options of a file."""
    accounts = Accounts(
        {"GTID_AUDIT_DEFAULTS_FILE": str(file)}, lambda _text: None, reads_defaults=True
    )
    try:
        return encryption_of(accounts.target(f"root@{server.host}:{server.port}{query}"))
    except InventoryProblem:
        return REFUSED


def encryption_of(target: ServerTarget) -> str:
    try:
        connection = connect(target, timeout_seconds_max=10.0)
    except (pymysql.MySQLError, OSError):
        return REFUSED
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return TLS if (cursor.fetchone() or {})["Value"] else PLAIN


def the_clients(clients: Clients, file: Path, server: Server) -> str:
    """Return how the mysql client connects with the options of a file."""
    done = subprocess.run(
        [
            *(*clients.loader, str(clients.folder / "mysql"), f"--defaults-file={file}"),
            *(f"--host={server.host}", f"--port={server.port}", "--user=root", "-NBe"),
            "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
        ],
        capture_output=True,
        env={},
        check=False,
        timeout=60,
    )
    if done.returncode:
        return REFUSED
    return TLS if done.stdout.decode().rstrip("\n").partition("\t")[2] else PLAIN


# Lines of an option file, and what happens where the certificate has the address, and where not.
CASES = [
    ("", TLS, TLS),
    ("ssl-mode=DISABLED", PLAIN, PLAIN),
    ("ssl-mode=preferred", TLS, TLS),
    ("ssl-mode=REQUIRED", TLS, TLS),
    ("ssl-mode=REQUIRED\nssl-ca=OTHER", TLS, TLS),
    ("ssl-ca=CA", TLS, TLS),
    ("ssl-ca=OTHER", REFUSED, REFUSED),
    ("ssl-ca=OTHER\nssl-mode=DISABLED", PLAIN, PLAIN),
    ("ssl-mode=VERIFY_CA", REFUSED, REFUSED),
    ("ssl-mode=VERIFY_IDENTITY\nssl-ca=CA", TLS, REFUSED),
    ("ssl-mode=VERIFY_IDENTITY\nssl-ca=OTHER", REFUSED, REFUSED),
]

# Where the address of the certificate could matter.
CASES_OF_A_NAME = [case for case in CASES if "=CA" in case[0]]


@pytest.mark.parametrize("has_name", [True, False], ids=["with the address", "without"])
def test_the_modes_are_those_of_the_client(
    mysql97: Server,
    mysql_clients: Clients,
    authority: Authority,
    tmp_path: Path,
    *,
    has_name: bool,
) -> None:
    other = Authority(tmp_path, "other").file
    file = tmp_path / "my.cnf"
    with certified(mysql97, authority, mysql97.host if has_name else "db1.example"):
        for lines, named, unnamed in CASES if has_name else CASES_OF_A_NAME:
            text = lines.replace("CA", str(authority.file), 1) if "=CA" in lines else lines
            file.write_text("[client]\n" + text.replace("OTHER", str(other)) + "\n")
            file.chmod(0o600)
            expected = named if has_name else unnamed
            assert the_clients(mysql_clients, file, mysql97) == expected, lines
            assert ours(file, mysql97) == expected, lines


def test_a_dsn_chooses_the_mode_and_shows_a_client_certificate(
    mysql97: Server, authority: Authority, tmp_path: Path
) -> None:
    none = tmp_path / "my.cnf"
    none.write_text("")
    ca = f"ssl_ca={authority.file}"
    cert, key = authority.certify("client")
    with certified(mysql97, authority, "db1.example"):
        assert ours(none, mysql97, "?ssl=disabled") == PLAIN
        assert ours(none, mysql97, f"?{ca}") == REFUSED  # verify_identity
        assert ours(none, mysql97, f"?{ca}&ssl=verify_ca") == TLS
        mysql97.execute("CREATE USER certified REQUIRE X509")
        try:
            account = f"certified@{mysql97.host}:{mysql97.port}"
            query = f"{ca}&ssl=verify_ca"
            accounts = Accounts({}, pytest.fail)
            assert encryption_of(accounts.target(f"{account}?{query}")) == REFUSED
            shown = f"ssl_cert={cert}&ssl_key={key}"
            assert encryption_of(accounts.target(f"{account}?{query}&{shown}")) == TLS
            assert encryption_of(accounts.target(f"{account}?ssl=preferred&{shown}")) == TLS
        finally:
            mysql97.execute("DROP USER certified")


def test_a_server_without_tls_is_refused_where_tls_is_required(
    mysql56: Server, authority: Authority, tmp_path: Path
) -> None:
    file = tmp_path / "my.cnf"
    for lines, expected in (
        ("", PLAIN),
        ("ssl-mode=DISABLED", PLAIN),
        ("skip-ssl", PLAIN),
        ("ssl-mode=REQUIRED", REFUSED),
        ("ssl=1", REFUSED),
        (f"ssl-ca={authority.file}", REFUSED),
        (f"ssl-ca={authority.file}\nssl-verify-server-cert", REFUSED),
    ):
        file.write_text(f"[client]\n{lines}\n")
        assert ours(file, mysql56) == expected, lines


def test_a_server_with_tls_that_is_too_old_is_read_without(
    installation56: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority(tmp_path, is_rsa=True)
    cert, key = authority.certify("server")
    options = (f"--ssl-ca={authority.file}", f"--ssl-cert={cert}", f"--ssl-key={key}")
    with shapes.single(installation56, settings=Settings(extra=options)) as server:
        assert server.query("SELECT @@have_ssl") == [("YES",)]
        account = f"root@{server.host}:{server.port}"
        accounts = Accounts({}, pytest.fail)
        for query in ("", "?ssl=required"):
            with pytest.raises(TlsTooOld, match="ssl=disabled connects without TLS"):
                connect(accounts.target(account + query), timeout_seconds_max=10.0)
        assert encryption_of(accounts.target(f"{account}?ssl=disabled")) == PLAIN
        assert run(["locks", f"{account}?ssl=preferred"]) == 3
        assert "ssl=disabled" in capsys.readouterr().out


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def account97(mysql97: Server) -> Iterator[Server]:
    mysql97.execute(
        f'CREATE USER connecting IDENTIFIED BY "{PASSWORD}"',
        "GRANT PROCESS, SELECT ON *.* TO connecting",
    )
    try:
        yield mysql97
    finally:
        mysql97.execute("DROP USER connecting")


def test_a_command_finds_the_account_in_the_files_of_the_user(
    account97: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GTID_AUDIT_DEFAULTS_FILE")
    address = f"{account97.host}:{account97.port}"
    password = PASSWORD.replace("'", r"\'")
    (tmp_path / ".my.cnf").write_text(f"[client]\nuser=connecting\npassword='{password}'\n")
    (tmp_path / ".my.cnf").chmod(0o600)
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    (tmp_path / "secret").chmod(0o400)
    for dsn in (
        address,
        f"connecting@{address}",
        f"connecting@{account97.socket_path}",
        f"mysql://connecting@{address}/?ssl=required",
    ):
        assert run(["locks", dsn]) == 0, capsys.readouterr()
    (tmp_path / ".my.cnf").unlink()
    assert run(["locks", f"connecting@{address}?password_file={tmp_path}/secret"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["locks", address]) == 64
    assert f"{address}: no user: write user@host" in capsys.readouterr().err
    assert run(["locks", f"connecting@{address}"]) == 3
    assert "Access denied" in capsys.readouterr().out


def test_the_first_commands_of_the_page(
    pair97: Pair, mysql97: Server, mysql56: Server, tmp_path: Path
) -> None:
    """The first one requires TLS, which 5.6 does not offer; the second one takes what there is."""
    first, second = re.findall(r"gtid-audit (pair [^\n`]*)", PAGE.read_text())[:2]
    assert first.count("?ssl=required") == 2
    assert "ssl" not in second
    (tmp_path / ".my.cnf").write_text("[client]\nuser=root\n")
    (tmp_path / ".my.cnf").chmod(0o600)
    one, other, modern, old = (
        f"{each.host}:{each.port}" for each in (pair97.a, pair97.b, mysql97, mysql56)
    )
    for command, addresses, statuses in (
        (first, (one, other), {0, 1, 2}),
        (first, (modern, old), {3}),
        (second, (modern, old), {0, 1, 2}),
    ):
        here = command.replace("db1:3306", addresses[0]).replace("db2:3306", addresses[1])
        done = run_cli(*shlex.split(here), environment={"HOME": str(tmp_path)})
        assert done.returncode in statuses, done.stdout + done.stderr
        assert all(address in done.stdout for address in addresses)


def test_a_log_operand_may_be_a_server_in_a_short_form(
    mysql97: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"root@{mysql97.host}:{mysql97.port}"
    assert run(["binlog", "scan", address]) == 0
    assert f"{mysql97.host}:{mysql97.port}" in capsys.readouterr().out
