"""The examples of docs/connecting.md that need no server, and what a command says of a bad DSN."""

import re
from pathlib import Path

import pytest

from gtid_audit.cli import run
from tests.gtid_audit.build import run_cli
from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.dsn import OPTIONS, is_dsn, read_dsn
from topology.adapters.inventory.fleet_file import parse_fleet
from topology.adapters.inventory.tls_choice import SSL_MODES
from topology.readings.target import Secret, SslMode

PAGE = (Path(__file__).parents[2] / "docs/connecting.md").read_text()


def blocks(language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def test_the_forms_of_the_page_are_dsns() -> None:
    rows = PAGE.split("| write | for |")[1].split("\n\n")[0].splitlines()[2:]
    forms = [form for row in rows for form in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(forms) == 10
    for form in forms:
        read_dsn(form)
        assert is_dsn(form) or form.startswith("/")


def test_the_page_names_every_option_and_mode() -> None:
    for name in (*OPTIONS, *SSL_MODES):
        assert name in PAGE


def test_the_option_file_of_the_page(tmp_path: Path) -> None:
    [text] = [block for block in blocks() if block.startswith("[client]")]
    (tmp_path / "my.cnf").write_text(text)
    (tmp_path / "my.cnf").chmod(0o600)
    found = AccountFiles({}, pytest.fail).option_file(str(tmp_path / "my.cnf"), group=None)
    assert (found.host, found.port, found.user) == ("db1.example", 3307, "audit")
    assert found.password == Secret("it's # secret")
    assert (found.tls.mode, found.tls.ca) == (SslMode.VERIFY_CA, "/etc/ssl/mysql-ca.pem")


def test_the_fleet_file_of_the_page(tmp_path: Path) -> None:
    from tests.topology.test_login_file import write_login_file

    [text] = blocks("yaml")
    (tmp_path / "secret").write_text("of the file\n")
    (tmp_path / "secret").chmod(0o400)
    write_login_file(tmp_path / "login", "[orders]\n", 'password = "of the path"\n')
    fleet = parse_fleet(
        text.replace("/run/secrets/mysql", str(tmp_path / "secret")),
        name="fleet.yaml",
        environment={"MYSQL_TEST_LOGIN_FILE": str(tmp_path / "login")},
        warn=pytest.fail,
    )
    found = {each.name: each.password for each in fleet.clusters[0].targets}
    assert found == {"orders-1": Secret("of the file"), "orders-2": Secret("of the path")}


@pytest.mark.parametrize("number", [0, 1])
def test_the_refusals_of_the_page(number: int) -> None:
    shown = [block for block in blocks() if block.startswith("$ ")]
    assert len(shown) == 2
    command, said = shown[number].split("\n", 1)
    words = [word.strip('"') for word in command.removeprefix("$ gtid-audit ").split()]
    done = run_cli(*words)
    assert (done.returncode, done.stdout, done.stderr) == (64, "", said)


@pytest.mark.parametrize(
    "words",
    [
        ("pair", "root:s3cr3t@db1", "root@db2"),
        ("pair", "root@db1", "root@db2", "root:s3cr3t@db3"),
        ("audit", "root:s3cr3t@db1:3306"),
        ("locks", "root:s3c/r3t@db1"),
        ("trace", "root:s3cr3t@db1"),
        ("binlog", "scan", "root:s3cr3t@db1"),
        ("handshake", "[::1]:3306", "root:s3cr3t@[::1]"),
        ("schema", "drift", "root:s3cr3t@db1", "root@db2"),
        ("repair", "plan", "--pair", "root:s3cr3t@db1", "root@db2"),
    ],
)
def test_no_command_shows_a_password_in_a_dsn(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 64
    done = capsys.readouterr()
    assert done.err
    assert "s3c" not in done.out + done.err
