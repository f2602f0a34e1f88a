""".mylogin.cnf, as mysql_config_editor writes it and my_print_defaults reads it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from compose.native.installation import Clients
from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.fleet_file import parse_fleet
from topology.adapters.inventory.login_file import login_file_path, read_login_file
from topology.adapters.inventory.option_file import OptionFileProblem
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.targets import Accounts
from topology.readings.target import Secret, SslMode

PASSWORD = "p#w '\" \u00e0"


def run(clients: Clients, file: Path, *words: str, typed: str = "") -> str:
    """Run a program of MySQL. Without a terminal it reads the password from standard input."""
    program, *others = words
    done = subprocess.run(
        [*clients.loader, str(clients.folder / program), *others],
        input=typed.encode(),
        capture_output=True,
        env={"MYSQL_TEST_LOGIN_FILE": str(file)},
        start_new_session=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode()


def set_path(clients: Clients, file: Path, name: str, *words: str) -> None:
    editor = ("mysql_config_editor", "set", f"--login-path={name}", "--password", *words)
    run(clients, file, *editor, typed=PASSWORD + "\n")


@pytest.fixture
def edited(mysql_clients: Clients, tmp_path: Path) -> Path:
    file = tmp_path / "mylogin.cnf"
    set_path(mysql_clients, file, "prod", "--host=db1", "--user=au\"di't", "--port=3307")
    set_path(mysql_clients, file, "local", "--user=root", "--socket=/run/a b.sock")
    set_path(mysql_clients, file, "client", "--user=everyone")
    return file


@pytest.mark.parametrize("groups", [("prod",), ("local", "client"), ("client", "prod")])
def test_a_login_path_is_read_as_my_print_defaults_reads_it(
    mysql_clients: Clients, edited: Path, groups: Sequence[str]
) -> None:
    lines = read_login_file(edited).lines_of(groups)
    assert lines
    found = "".join(f"--{line.name}={line.value}\n" for line in lines)
    login = f"--login-path={groups[-1]}"
    printed = run(mysql_clients, edited, "my_print_defaults", login, "--show", *groups)
    assert found == printed


def test_a_dsn_takes_its_address_and_account_from_a_login_path(edited: Path) -> None:
    accounts = Accounts({"MYSQL_TEST_LOGIN_FILE": str(edited), "MYSQL_PWD": "no"}, pytest.fail)
    target = accounts.target("mysql://?login_path=local")
    assert (target.unix_socket, target.password) == ("/run/a b.sock", Secret(PASSWORD))
    # [client] comes later in the file, and counts as for the mysql client.
    assert target.user == "everyone"
    target = accounts.target("u@?login_path=prod")
    assert (target.name, target.user) == ("db1:3307", "u")
    target = accounts.target("mysql://db2/?login_path=prod")
    assert (target.name, target.password) == ("db2:3307", Secret(PASSWORD))
    with pytest.raises(
        InventoryProblem,
        match=r"no login path prd; login paths in the file: \[prod\], \[local\], \[client\]",
    ):
        accounts.target("mysql://?login_path=prd")


# -- without MySQL's programs ---------------------------------------------------------------------


def write_login_file(path: Path, *lines: str) -> bytes:
    """Write a file in the format of mysql_config_editor; return its content."""
    key = bytes(range(20))
    folded = bytearray(key[:16])
    for index in range(4):
        folded[index] ^= key[16 + index]
    content = b"\0\0\0\0" + key
    for line in lines:
        text = line.encode()
        missing = 16 - len(text) % 16
        encryptor = Cipher(algorithms.AES128(bytes(folded)), modes.ECB()).encryptor()
        cipher = encryptor.update(text + bytes([missing]) * missing) + encryptor.finalize()
        content += len(cipher).to_bytes(4, "little") + cipher
    path.write_bytes(content)
    path.chmod(0o600)
    return content


LINES = ("\n", "[prod]\n", "user = audit\n", 'password = "a#b"\n', "host = db1 # no comment\n")


def test_a_number_sign_begins_no_comment(tmp_path: Path) -> None:
    write_login_file(tmp_path / "f", *LINES)
    found = {line.name: line.value for line in read_login_file(tmp_path / "f").lines}
    assert found == {"user": "audit", "password": "a#b", "host": "db1 # no comment"}


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o700, 0o610])
def test_a_file_that_others_may_read_is_refused_if_it_was_named(tmp_path: Path, mode: int) -> None:
    write_login_file(tmp_path / "f", *LINES)
    (tmp_path / "f").chmod(mode)
    files = AccountFiles({"MYSQL_TEST_LOGIN_FILE": str(tmp_path / "f")}, pytest.fail)
    with pytest.raises(InventoryProblem, match="only its owner may read and write it"):
        files.login_path("prod")


def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f"
    content = write_login_file(path, *LINES)
    whole = read_login_file(path)
    ends = [24]
    while ends[-1] < len(content):
        length = int.from_bytes(content[ends[-1] : ends[-1] + 4], "little")
        ends.append(ends[-1] + 4 + length)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        if length in ends:
            number = ends.index(length)
            assert len(read_login_file(path).lines) == max(number - 2, 0)
            continue
        with pytest.raises(OptionFileProblem) as problem:
            read_login_file(path)
        number = sum(end < length for end in ends)
        said = f"damaged in line {number}" if length > 24 else "not a login file"
        assert str(problem.value) == f"{path}: {said}" + " of mysql_config_editor" * (length < 24)
    for at in (24, 26, 27, ends[1] - 1):  # lengths, and the padding of the first line
        damaged = bytearray(content)
        damaged[at] ^= 0x81
        path.write_bytes(damaged)
        with pytest.raises(OptionFileProblem, match=r"damaged in line 1|before the first"):
            read_login_file(path)
    assert len(whole.lines) == 3
    write_login_file(path, "[prod]\n", f"user={'u' * 4096}\n")
    with pytest.raises(OptionFileProblem, match="damaged in line 2"):
        read_login_file(path)
    path.write_bytes(content + b"\0" * (1 << 20))
    with pytest.raises(OptionFileProblem, match="larger than"):
        read_login_file(path)


def test_a_fleet_file_takes_accounts_from_login_paths(tmp_path: Path) -> None:
    write_login_file(
        tmp_path / "login",
        *LINES,
        "[own]\n",
        "user = own\n",
        "ssl-mode=REQUIRED\n",
        "[client]\n",
        "password=c\n",
    )
    text = """
defaults: {password: {login_path: prod}}
clusters: [{name: c, servers: [
  {name: a, host: h}, {name: b, host: i, user: u, password: {login_path: own}},
  {name: c, dsn: "mysql://j?login_path=own"}]}]
"""
    environment = {"MYSQL_TEST_LOGIN_FILE": str(tmp_path / "login")}
    fleet = parse_fleet(text, name="f.yaml", environment=environment, warn=pytest.fail)
    found = [(each.user, each.password, each.host) for each in fleet.clusters[0].targets]
    # The fleet file has the addresses: the host of the login path does not count.
    assert found == [
        ("audit", Secret("c"), "h"),  # [client] comes later in the file
        ("u", Secret("c"), "i"),
        ("own", Secret("c"), "j"),
    ]
    modes = [each.ssl_mode for each in fleet.clusters[0].targets]
    assert modes == [SslMode.PREFERRED, SslMode.REQUIRED, SslMode.REQUIRED]


def test_where_the_file_is() -> None:
    assert login_file_path({"HOME": "/h"}) == Path("/h/.mylogin.cnf")
    assert login_file_path({"HOME": "/h", "MYSQL_TEST_LOGIN_FILE": "/f"}) == Path("/f")
    assert login_file_path({}) is None
    with pytest.raises(InventoryProblem, match="HOME is not set"):
        AccountFiles({}, pytest.fail).login_path("prod")
    with pytest.raises(InventoryProblem, match=r"/nowhere/\.mylogin\.cnf: No such file"):
        AccountFiles({"HOME": "/nowhere"}, pytest.fail).login_path("prod")
