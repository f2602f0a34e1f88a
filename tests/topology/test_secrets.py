import copy
import pickle
from pathlib import Path

import pytest

from topology.adapters.inventory.option_file import OptionFileProblem, read_option_file
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    WarnOnce,
    account_from_option_file,
    password_from_environment,
    password_from_variable,
)
from topology.adapters.inventory.targets import Accounts, pair_targets
from topology.readings.target import Secret

SECRET = 's3cr;t # "it\'s" \\ x'


def options(tmp_path: Path, text: str, *groups: str) -> dict[str, str]:
    path = tmp_path / "my.cnf"
    path.write_text(text)
    return read_option_file(path, groups=groups or ("client",)).values


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("password=x", "x"),
        ("  password  =  x  ", "x"),
        ("password = 'x y'", "x y"),
        ('password = "x#y"', "x#y"),
        ("password = x#y", "x"),
        ("password = 'x'y'", "x'y"),
        (r"password = a\sb\tc\\d\qe", "a b\tc\\d\\qe"),
        (r"password = 'it\'s'", "it's"),
        (r'password = "a\"#b"', 'a"#b'),
        ("loose_password = x", "x"),
        ("password = x=y", "x=y"),
        ("password =", ""),
        ("password = '", "'"),
        ("password = one\npassword = two", "two"),
    ],
)
def test_values_are_read_as_the_servers_clients_read_them(
    tmp_path: Path, line: str, value: str
) -> None:
    assert options(tmp_path, f"[client]\n{line}\n")["password"] == value


def test_groups_comments_and_names(tmp_path: Path) -> None:
    text = "# c\n; c\n\n[mysqld]\nuser=no\n[ client ]\nuser=yes\nssl_ca = /x\nquick\n"
    assert options(tmp_path, text) == {"user": "yes", "ssl-ca": "/x", "quick": ""}


def test_the_later_group_wins(tmp_path: Path) -> None:
    text = "[gtid-audit]\nuser=b\n[client]\nuser=a\npassword=p\n"
    assert options(tmp_path, text, "client", "gtid-audit") == {"user": "b", "password": "p"}


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "2.cnf").write_text("[client]\nuser=two\n")
    (tmp_path / "d" / "1.cnf").write_text("[client]\nuser=one\npassword=p\n")
    (tmp_path / "d" / "3.txt").write_text("[client]\nuser=no\n")
    (tmp_path / "e.cnf").write_text("[client]\nsocket=/s\n")
    text = f"!include {tmp_path}/e.cnf\n!includedir d\n"
    assert options(tmp_path, text) == {"socket": "/s", "user": "two", "password": "p"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("password=hunter2", "line 1: an option before"),
        ("[client\npassword=hunter2", r"line 1: expected \[group\]"),
        ("[client]\npassword", "line 2: 'password' without a value"),
        ("!includes x", "line 1: expected !include"),
        ("!includedir /nowhere", "not a directory"),
        ("!include my.cnf", "10 levels deep"),
        ("!include nowhere.cnf", "No such file"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(OptionFileProblem, match=said) as problem:
        options(tmp_path, text)
    assert "hunter2" not in str(problem.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_bytes(b"[client]\npassword=\xff")
    with pytest.raises(OptionFileProblem, match="not UTF-8"):
        read_option_file(tmp_path / "my.cnf", groups=("client",))


def test_modes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=u\npassword=p\n")
    said: list[str] = []
    path.chmod(0o600)
    assert account_from_option_file(str(path), group=None, warn=said.append) == ("u", Secret("p"))
    assert said == []
    path.chmod(0o644)
    account_from_option_file(str(path), group=None, warn=said.append)
    assert len(said) == 1
    assert "can read it" in said[0]
    path.chmod(0o666)
    with pytest.raises(InventoryProblem, match="can change it"):
        account_from_option_file(str(path), group=None, warn=said.append)
    with pytest.raises(InventoryProblem, match="not a regular file"):
        account_from_option_file(str(tmp_path), group=None, warn=said.append)


def test_a_named_group_must_be_there_and_is_the_only_one_read(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=u\npassword=p\n[audit]\npassword=q\n")
    path.chmod(0o600)
    found = account_from_option_file(str(path), group="audit", warn=pytest.fail)
    assert found == (None, Secret("q"))
    with pytest.raises(
        InventoryProblem, match=r"no group \[other\]; groups in the file: \[client\], \[audit\]"
    ):
        account_from_option_file(str(path), group="other", warn=pytest.fail)


def test_environment() -> None:
    both = {"GTID_AUDIT_PASSWORD": "a", "MYSQL_PWD": "b"}
    assert password_from_environment(both) == Secret("a")
    assert password_from_environment({"MYSQL_PWD": "b"}) == Secret("b")
    assert password_from_environment({}) == Secret("")
    assert password_from_variable("X", {"X": "x"}) == Secret("x")
    with pytest.raises(InventoryProblem, match="X is not set"):
        password_from_variable("X", {})


def test_what_is_typed_counts_before_the_option_file_before_the_environment(
    tmp_path: Path,
) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=filed\npassword=from-file\n")
    path.chmod(0o600)
    environment = {"MYSQL_PWD": "from-environment"}
    dsns = (f"mysql://a/?option_file={path}", "mysql://u@b/")
    first, second = pair_targets(*dsns, Accounts(environment, pytest.fail))
    assert (first.user, first.password) == ("filed", Secret("from-file"))
    assert (second.user, second.password) == ("u", Secret("from-environment"))
    typed = pair_targets(*dsns, Accounts(environment, pytest.fail, Secret("typed")))
    assert {target.password for target in typed} == {Secret("typed")}


def test_a_pair_is_two_servers_with_users() -> None:
    accounts = Accounts({}, pytest.fail)
    with pytest.raises(InventoryProblem, match="same server"):
        pair_targets("mysql://u@h/", "mysql://v@h:3306/", accounts)
    with pytest.raises(InventoryProblem, match="no user"):
        pair_targets("mysql://h/", "mysql://u@i/", accounts)
    with pytest.raises(InventoryProblem, match="DSN B has no host"):
        pair_targets("mysql://u@h/", "mysql://u@", accounts)


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret(SECRET)
    for text in (repr(secret), str(secret), f"{secret:>20}", "%s" % secret, repr([secret])):  # noqa: UP031
        assert SECRET not in text
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps({"password": secret})
    assert copy.deepcopy({"a": secret})["a"] is secret
    assert copy.copy(secret) is secret
    assert secret.hidden_in(f"<{SECRET}>") == "<…>"
    assert Secret("").hidden_in("text") == "text"


def test_a_process_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(InventoryProblem, match=r"~/x\.cnf: no home directory"):
        account_from_option_file("~/x.cnf", group=None, warn=pytest.fail)


def test_a_warning_is_said_once() -> None:
    said: list[str] = []
    warn = WarnOnce(said.append)
    for text in ("a", "b", "a"):
        warn(text)
    assert said == ["a", "b"]
