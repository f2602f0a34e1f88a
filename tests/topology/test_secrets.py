import copy
import pickle
from pathlib import Path

import pytest

from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import (
    WarnOnce,
    password_from_environment,
    password_from_file,
    password_from_variable,
)
from topology.adapters.inventory.targets import Accounts, pair_targets
from topology.readings.target import Secret

SECRET = 's3cr;t # "it\'s" \\ x'


def files(said: list[str], **environment: str) -> AccountFiles:
    return AccountFiles(environment, said.append)


def test_modes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=u\npassword=p\n")
    said: list[str] = []
    for mode in (0o600, 0o640):
        path.chmod(mode)
        found = files(said).option_file(str(path), group=None)
        assert (found.user, found.password) == ("u", Secret("p"))
        assert said == []
    path.chmod(0o644)
    both = files(said)
    both.option_file(str(path), group=None)
    both.option_file(str(path), group="client")
    assert len(said) == 1
    assert "can read it" in said[0]
    path.chmod(0o666)
    with pytest.raises(InventoryProblem, match="can change it"):
        files(said).option_file(str(path), group=None)
    with pytest.raises(InventoryProblem, match="not a regular file"):
        files(said).option_file(str(tmp_path), group=None)
    path.chmod(0o600)
    (tmp_path / "outer.cnf").write_text(f"!include {path}\n")
    (tmp_path / "outer.cnf").chmod(0o600)
    path.chmod(0o666)
    with pytest.raises(InventoryProblem, match=r"my\.cnf: every user of this machine can change"):
        files(said).option_file(str(tmp_path / "outer.cnf"), group=None)


def test_a_named_group_must_be_there_and_is_the_only_one_read(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=u\npassword=p\n[audit]\npassword=q\n")
    path.chmod(0o600)
    read = AccountFiles({}, pytest.fail)
    found = read.option_file(str(path), group="audit")
    assert (found.user, found.password) == (None, Secret("q"))
    with pytest.raises(
        InventoryProblem, match=r"no group \[other\]; groups in the file: \[client\], \[audit\]"
    ):
        read.option_file(str(path), group="other")


def test_the_group_of_the_program_precedes_those_of_the_client(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[gtid-audit]\nuser=own\n[client]\nuser=a\npassword=p\n[mysql]\npassword=q\n")
    path.chmod(0o600)
    found = AccountFiles({}, pytest.fail).option_file(str(path), group=None)
    assert (found.user, found.password) == ("own", Secret("q"))


def test_a_file_that_servers_share_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nuser=u\n[other]\nuser=v\n")
    path.chmod(0o600)
    read = AccountFiles({}, pytest.fail)
    for group, user in ((None, "u"), ("other", "v")):
        assert read.option_file(str(path), group=group).user == user
    path.unlink()
    for group, user in ((None, "u"), ("other", "v")):
        assert read.option_file(str(path), group=group).user == user


@pytest.mark.parametrize(
    ("content", "password"),
    [
        (b"secret", "secret"),
        (b"secret\n", "secret"),
        (b"secret\r\n", "secret"),
        (b" s e#\\c'\n", " s e#\\c'"),
        ("gehe\u00efm".encode(), "gehe\u00efm"),
        (b"x" * 4096 + b"\n", "x" * 4096),
    ],
)
def test_a_password_in_a_file_of_its_own(tmp_path: Path, content: bytes, password: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o440)
    assert password_from_file(str(path), warn=pytest.fail) == Secret(password)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hunter2\n\n", "expected one line"),
        (b"hunter2\nhunter2\n", "expected one line"),
        (b"hunter2\0", "expected one line"),
        (b"hunter2\xff", "not UTF-8"),
        (b"x" * 4097, "longer than 4,096 bytes"),
        (b"x" * 9000, "longer than 4,096 bytes"),
    ],
)
def test_a_file_without_a_password_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InventoryProblem, match=said) as problem:
        password_from_file(str(path), warn=pytest.fail)
    assert "hunter2" not in str(problem.value)


def test_modes_of_a_password_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("p\n")
    said: list[str] = []
    path.chmod(0o444)
    assert password_from_file(str(path), warn=said.append) == Secret("p")
    assert [text.endswith("can read it; run `chmod 600` on it") for text in said] == [True]
    path.chmod(0o602)
    with pytest.raises(InventoryProblem, match="can change it"):
        password_from_file(str(path), warn=said.append)
    for other in (tmp_path, tmp_path / "none"):
        with pytest.raises(InventoryProblem, match=r"not a regular file|No such file"):
            password_from_file(str(other), warn=said.append)


def test_environment() -> None:
    both = {"GTID_AUDIT_PASSWORD": "a", "MYSQL_PWD": "b"}
    assert password_from_environment(both) == Secret("a")
    assert password_from_environment({"MYSQL_PWD": "b"}) == Secret("b")
    assert password_from_environment({}) is None
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
    accounts = Accounts({"HOME": "/root"}, pytest.fail)  # no file of the user is read
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
        AccountFiles({}, pytest.fail).option_file("~/x.cnf", group=None)


def test_a_warning_is_said_once() -> None:
    said: list[str] = []
    warn = WarnOnce(said.append)
    for text in ("a", "b", "a"):
        warn(text)
    assert said == ["a", "b"]
