"""Which place gives the address, the account and the TLS settings of a DSN."""

import os
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.topology.test_login_file import write_login_file
from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.targets import Accounts, pair_targets, targets_of
from topology.adapters.inventory.tls_choice import TlsChoice
from topology.readings.target import Secret, ServerTarget, SslMode


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


class Home:
    """A home directory, and the accounts of a command that its user runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[str] = []

    def my_cnf(self, text: str, mode: int = 0o600) -> Path:
        return write(self.path / ".my.cnf", text, mode)

    def accounts(self, typed: str | None = None, **environment: str) -> Accounts:
        everything = {"HOME": str(self.path), **environment}
        secret = None if typed is None else Secret(typed)
        return Accounts(everything, self.said.append, secret, reads_defaults=True)

    def target(self, dsn: str, typed: str | None = None, **environment: str) -> ServerTarget:
        return self.accounts(typed, **environment).target(dsn)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_files_of_the_user_give_what_a_dsn_leaves_out(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\nport=3307\n[mysql]\npassword=p\n[mysqld]\nuser=no\n")
    target = home.target("db1/?ssl=required")
    assert (target.name, target.user) == ("db1:3307", "u")
    assert (target.password, target.ssl_mode) == (Secret("p"), SslMode.REQUIRED)
    assert home.target("v@db1:3306").name == "db1:3306"
    assert home.target("v@db1:3306").user == "v"
    first, second = pair_targets("db1/?", "db2/?", home.accounts())
    assert (first.name, second.name) == ("db1:3307", "db2:3307")
    with pytest.raises(InventoryProblem, match="two DSNs refer to the same server: db1:3307"):
        targets_of(["db1:3307", "mysql://db1"], home.accounts())
    assert home.said == []


def test_without_files_a_dsn_says_all_of_it(home: Home) -> None:
    with pytest.raises(
        InventoryProblem, match=r"db1:3306: no user: write user@host, or 'user' in an option file"
    ):
        home.target("db1:3306")
    target = home.target("u@db1")
    assert (target.password, target.ssl_mode) == (Secret(""), SslMode.PREFERRED)
    with pytest.raises(InventoryProblem, match="DSN 1 has no host"):
        targets_of(["mysql://u@"], home.accounts())


def test_a_socket_of_a_file_is_for_localhost_as_for_the_client(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\nsocket=/run/my.sock\nport=3307\n")
    for dsn in ("mysql://", "mysql://localhost", "v@localhost", "mysql://?ssl=required"):
        assert home.target(dsn).unix_socket == "/run/my.sock"
        assert home.target(dsn).name == "/run/my.sock"
    for dsn in ("localhost:3306", "v@127.0.0.1", "mysql://db1"):
        assert home.target(dsn).unix_socket is None
    home.my_cnf("[client]\nuser=u\nhost=db9\nsocket=/run/my.sock\n")
    assert home.target("mysql://").name == "db9:3306"
    home.my_cnf("[client]\nuser=u\nsocket=/run/my.sock\nprotocol=tcp\n")
    assert home.target("v@localhost").name == "localhost:3306"


def test_a_path_that_is_no_socket_is_refused(home: Home) -> None:
    fleet = write(home.path / "fleet.yaml", "clusters: []\n")
    with pytest.raises(InventoryProblem, match=r"fleet\.yaml: not a unix socket; a fleet file is"):
        home.target(str(fleet))
    with pytest.raises(InventoryProblem, match="not a unix socket"):
        home.target(f"mysql://u@?unix_socket={fleet}")


PASSWORDS = ["typed", "named", "GTID_AUDIT_PASSWORD", "MYSQL_PWD", "login", "my.cnf"]


@pytest.mark.parametrize("named", ["option_file", "login_path", "password_file"])
@pytest.mark.parametrize("rank", range(len(PASSWORDS) + 1))
def test_the_password_is_that_of_the_first_place_that_has_one(
    home: Home, named: str, rank: int
) -> None:
    """Each place in turn is the first: those before it have no password."""
    there = PASSWORDS[rank:]
    lines = ["[client]\n", "user=u\n"]
    if "login" in there:
        lines += ["password=login\n"]
    if "named" in there:
        lines += ["[audit]\n", "password=named\n"]
    login = home.path / ".mylogin.cnf"
    write_login_file(login, *lines)
    home.my_cnf("[client]\n" + "password=my.cnf\n" * ("my.cnf" in there))
    environment = {name: name for name in ("GTID_AUDIT_PASSWORD", "MYSQL_PWD") if name in there}
    query = ""
    if "named" in there:
        file = write(home.path / "named.cnf", "[client]\npassword=named\n")
        secret = write(home.path / "secret", "named\n")
        values = {"option_file": file, "login_path": "audit", "password_file": secret}
        query = f"?{named}={values[named]}"
    typed = "typed" if "typed" in there else None
    target = home.target(f"v@db1{query}", typed, **environment)
    assert target.password == Secret(there[0] if there else "")
    assert home.said == []


def test_a_named_file_precedes_those_of_the_user_value_by_value(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\nport=3307\npassword=p\nssl-mode=REQUIRED\n")
    file = write(
        home.path / "named.cnf", "[client]\nuser=v\n[other]\nhost=db9\nuser=w\nport=3309\n"
    )
    target = home.target(f"mysql://db1/?option_file={file}")
    assert (target.name, target.user, target.password) == ("db1:3307", "v", Secret("p"))
    assert target.ssl_mode is SslMode.REQUIRED
    target = home.target(f"mysql://?option_file={file}&group=other")
    assert (target.name, target.user) == ("db9:3309", "w")


def test_a_password_that_would_be_typed_is_a_problem_only_if_no_place_precedes(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\npassword\n")
    assert home.target("db1:1", typed="typed").password == Secret("typed")
    assert home.target("db1:1", MYSQL_PWD="e").password == Secret("e")
    with pytest.raises(InventoryProblem, match=r"\.my\.cnf, line 3: 'password' without a value"):
        home.target("db1:1")


def test_a_file_of_the_user_that_others_could_have_changed_is_ignored(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\n", mode=0o666)
    write_login_file(home.path / ".mylogin.cnf", "[client]\n", "user=v\n")
    (home.path / ".mylogin.cnf").chmod(0o640)
    with pytest.raises(InventoryProblem, match="no user"):
        home.target("db1:1")
    assert [text.partition(": ")[2] for text in home.said] == [
        "only its owner may read and write it; run `chmod 600` on it; it is ignored",
        "every user of this machine can change it; run `chmod 600` on it; it is ignored",
    ]


def test_a_file_of_the_user_that_is_malformed_is_a_problem(home: Home) -> None:
    home.my_cnf("user=u\n")
    with pytest.raises(InventoryProblem, match=r"\.my\.cnf, line 1: an option before"):
        home.target("v@db1:1")


def test_another_file_or_none_may_stand_for_that_of_the_user(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\n")
    other = write(home.path / "other.cnf", "[client]\nuser=v\n")
    assert home.target("db1:1", GTID_AUDIT_DEFAULTS_FILE=str(other)).user == "v"
    with pytest.raises(InventoryProblem, match="no user"):
        home.target("db1:1", GTID_AUDIT_DEFAULTS_FILE="")
    with pytest.raises(InventoryProblem, match=r"/no\.cnf: No such file"):
        home.target("db1:1", GTID_AUDIT_DEFAULTS_FILE="/no.cnf")


def test_files_are_read_only_for_a_command_of_a_user(home: Home) -> None:
    home.my_cnf("[client]\nuser=u\n")
    environment = {"HOME": str(home.path)}
    with pytest.raises(InventoryProblem, match="no user"):
        Accounts(environment, pytest.fail).target("db1:1")
    # Nor does a test of this project depend on the files of the user who runs it.
    assert AccountFiles(os.environ, pytest.fail).defaults().user is None


# -- certificates ---------------------------------------------------------------------------------


def test_certificates_are_checked_before_connecting(home: Home) -> None:
    authority = Authority(home.path)
    cert, key = authority.certify("client")
    target = home.target(f"u@db1/?ssl_ca={authority.file}&ssl_cert={cert}&ssl_key={key}")
    assert (target.ssl_mode, target.ssl_ca) == (SslMode.VERIFY_IDENTITY, str(authority.file))
    home.my_cnf(f"[client]\nssl-ca={authority.file}\nssl-cert={cert}\nssl-key={key}\n")
    assert home.target("u@db1").ssl_mode is SslMode.VERIFY_CA
    assert home.target("u@db1/?ssl=verify_identity").ssl_ca == str(authority.file)
    assert home.target("u@db1/?ssl=disabled").ssl_cert is None


def test_a_file_of_certificates_that_cannot_be_used_is_refused_by_name(home: Home) -> None:
    authority = Authority(home.path)
    cert, key = authority.certify("client")
    _, other_key = authority.certify("other")
    _, locked = authority.certify("locked", passphrase=b"x")
    text = write(home.path / "text.pem", "no certificate\n")
    ca = str(authority.file)
    cases = [
        (TlsChoice(SslMode.VERIFY_CA, "/no/ca.pem"), "ssl_ca: /no/ca.pem: No such file"),
        (TlsChoice(SslMode.VERIFY_CA, str(home.path)), f"ssl_ca: {home.path}: Is a directory"),
        (TlsChoice(SslMode.VERIFY_CA, str(text)), f"ssl_ca: {text}: contains no certificate"),
        (TlsChoice(SslMode.VERIFY_CA, str(key)), f"ssl_ca: {key}: contains no certificate"),
        (TlsChoice(SslMode.REQUIRED, None, "/no/c.pem", str(key)), "ssl_cert: /no/c.pem: No such"),
        (TlsChoice(SslMode.REQUIRED, None, str(cert), "/no/k.pem"), "ssl_key: /no/k.pem: No such"),
        (
            TlsChoice(SslMode.REQUIRED, None, str(cert), str(other_key)),
            f"ssl_cert: {cert}, ssl_key: {other_key}: not a certificate and its key",
        ),
        (
            TlsChoice(SslMode.REQUIRED, None, str(cert), str(locked)),
            f"ssl_key: the private key {locked} has a passphrase",
        ),
        (TlsChoice(SslMode.VERIFY_CA, ca, str(cert), str(text)), f"ssl_cert: {cert}, ssl_key:"),
    ]
    files = home.accounts().files
    for choice, said in cases:
        for _ in range(2):  # what was found out once is said again
            with pytest.raises(InventoryProblem) as problem:
                files.check_tls(choice)
            assert str(problem.value).startswith(said)
    with pytest.raises(InventoryProblem, match=r"db2:3306: ssl_ca: /no/ca.pem: No such file"):
        pair_targets("u@db1", "u@db2/?ssl_ca=/no/ca.pem", home.accounts())
