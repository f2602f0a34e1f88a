"""What names logs on the command line, and what is said about names that name none."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gtid_audit.exits import UsageProblem
from gtid_audit.operands import logs_from_operands
from gtid_audit.operands.logs_from_operands import (
    LogFiles,
    LogServer,
    one_source,
    paths_of,
    read_log_operand,
    read_log_operands,
)
from topology.adapters.inventory.problem import InventoryProblem


def _folder(tmp_path: Path, *names: str) -> Path:
    for name in names:
        (tmp_path / name).write_bytes(b"\xfebin")
    return tmp_path


def _names(text: str | Path) -> list[str]:
    found = read_log_operand(str(text))
    assert isinstance(found, LogFiles)
    return [path.name for path in found.paths]


def _refusal(text: str | Path) -> str:
    with pytest.raises(UsageProblem) as caught:
        read_log_operand(str(text))
    return str(caught.value)


@pytest.mark.parametrize("kind", ["fifo", "/dev/null", "/dev/fd"])
def test_what_is_no_regular_file_is_refused_before_it_is_opened(tmp_path: Path, kind: str) -> None:
    """Opening a FIFO to which nobody writes waits for ever."""
    if kind == "fifo":
        os.mkfifo(tmp_path / "b.000001")
        assert "a pipe, not a regular file" in _refusal(tmp_path / "b.000001")
    elif kind == "/dev/null":
        assert "/dev/null: a device, not a regular file" in _refusal("/dev/null")
    else:  # what a shell makes of <(…)
        ends = os.pipe()
        try:
            assert "a pipe, not a regular file" in _refusal(f"/dev/fd/{ends[0]}")
        finally:
            for end in ends:
                os.close(end)


def test_a_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "saved", "binlog.[x]")
    assert _names(folder / "saved") == ["saved"]
    assert _names(folder / "binlog.[x]") == ["binlog.[x]"]


def test_numbered_files_of_a_directory_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.1000000", "b.999999", "b.000002", "ibdata1", "b.12")
    assert _names(folder) == ["b.000002", "b.999999", "b.1000000"]


def test_an_index_says_which_files_and_in_which_order(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000001", "b.000002", "b.000003")
    (folder / "b.index").write_text("./b.000002\n\n/var/lib/elsewhere/b.000003\n")
    assert _names(folder) == ["b.000002", "b.000003"]
    assert _names(folder / "b.index") == ["b.000002", "b.000003"]


def test_an_index_may_list_files_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    there = _folder(tmp_path / "logs", "b.000007") / "b.000007"
    (tmp_path / "b.index").write_text(f"{there}\n")
    assert _names(tmp_path) == ["b.000007"]
    (tmp_path / "b.index").write_text("logs/b.000007\n")
    assert read_log_operand(str(tmp_path)) == LogFiles(str(tmp_path), (there,))


def test_a_glob_takes_what_matches_but_no_index(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000010", "b.000009", "b.index", "relay.000001")
    (folder / "b.000011").mkdir()
    assert _names(folder / "b.*") == ["b.000009", "b.000010"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "none") == f"{tmp_path / 'none'}: no such file or directory"
    assert _refusal(tmp_path / "b.*").endswith("no file matches")
    assert "neither an index file nor files like binlog.000001" in _refusal(tmp_path)
    assert "empty operand" in _refusal("")
    with pytest.raises(UsageProblem, match="expected a file"):
        read_log_operands(())


@pytest.mark.parametrize(
    "text",
    [
        "audit:s3cr3t@db1:3306",
        "mysql//audit:s3cr3t@db1/",
        "mysqlx://audit:s3cr3t@db1/?ssl=required",
        "audit:s3cr3t/*@db1",
        "audit:" + "s3cr3t" * 100 + "@db1",
    ],
)
def test_a_dsn_without_its_scheme_is_not_shown(text: str) -> None:
    with pytest.raises(
        UsageProblem, match=r"expected user@host:port or mysql://user@host"
    ) as problem:
        read_log_operands([text])
    assert "s3cr3t" not in str(problem.value)


def test_a_server_in_a_short_form_unless_a_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, name in (
        ("audit@db1", "db1:3306"),
        ("audit@[::1]:3307", "[::1]:3307"),
        ("audit@/run/my.sock", "/run/my.sock"),
    ):
        operand = read_log_operand(text)
        assert isinstance(operand, LogServer)
        assert operand.name == name
    with pytest.raises(InventoryProblem, match="db1:3307: no user"):
        read_log_operand("db1:3307")
    assert "no such file" in _refusal("binlog.000001:4")
    _folder(tmp_path, "audit@db1", "db1:3307")
    for text in ("audit@db1", "db1:3307"):
        assert _names(text) == [text]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("my.sock")
        with pytest.raises(InventoryProblem, match="single word"):
            read_log_operand("my.sock")
        with pytest.raises(InventoryProblem, match=r"my\.sock: no user"):
            read_log_operand(str(tmp_path / "my.sock"))


def test_a_file_may_have_such_a_name(tmp_path: Path) -> None:
    file = tmp_path / "12:30@db1.000001"
    file.write_bytes(b"")
    [operand] = read_log_operands([str(file)])
    assert paths_of([operand]) == (file,)


def test_an_index_that_lists_what_is_not_there_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000001")
    (folder / "b.index").write_text("./b.000001\n./b.000002\n./b.000003\n")
    assert "lists b.000002 and 1 more, which cannot be found" in _refusal(folder)
    (folder / "b.index").write_text("\n")
    assert "lists no file" in _refusal(folder)


@pytest.mark.parametrize("pattern", ["", "b.*"])
def test_a_log_of_a_directory_that_cannot_be_read_is_refused(tmp_path: Path, pattern: str) -> None:
    """Without it the answer would be that of fewer logs."""
    place = tmp_path / pattern
    (_folder(tmp_path, "b.000001") / "b.000002").symlink_to("gone")
    assert f"{tmp_path}/b.000002: a link to gone, which does not exist" in _refusal(place)
    (tmp_path / "b.000002").unlink()
    os.mkfifo(tmp_path / "b.000002")
    assert f"{tmp_path}/b.000002: a pipe, not a regular file" in _refusal(place)
    (tmp_path / "b.000002").unlink()
    (tmp_path / "b.000002").mkdir()
    os.mkfifo(tmp_path / "b.fifo")  # another program's
    assert _names(place) == ["b.000001"]


def test_compressed_logs_of_a_directory_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("b.000001.gz", "b.000002.zst", "b.000003", "b.000003.gz", "c.000001.xz", "b.log.gz")
    assert _names(_folder(tmp_path, *names)) == ["b.000003"]
    assert (
        "b.000001.gz and 1 more compressed logs not read: decompress what is to be read as well"
        in capsys.readouterr().err
    )
    (tmp_path / "b.000003").unlink()
    assert "decompress b.000001.gz and 3 more compressed logs first" in _refusal(tmp_path)


def test_what_is_ambiguous_is_asked_back(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000001", "relay-bin.000001")
    assert "logs of more than one base name" in _refusal(folder)
    _folder(tmp_path, "b.index", "relay-bin.index")
    said = _refusal(folder)
    assert "more than one index" in said
    assert str(folder / "relay-bin.index") in said


def _log(path: Path, flags: int = 0, *, magic: bytes = b"\xfebin") -> None:
    path.write_bytes(magic + struct.pack("<IBIIIH", 1, 15, 1, 119, 123, flags) + bytes(100))


RELAY = 0x40  # LOG_EVENT_RELAY_LOG_F; the other flags of a first event: in use, ignorable


def test_of_a_data_directory_the_binary_logs_are_read(tmp_path: Path) -> None:
    _log(tmp_path / "b.000001")
    _log(tmp_path / "b.000002", 0x1)
    for name in ("relay.000008", "relay.000009", "relay-other.000001"):
        _log(tmp_path / name, RELAY)
    assert _names(tmp_path) == ["b.000001", "b.000002"]
    (tmp_path / "b.index").write_text("./b.000002\n")
    (tmp_path / "relay.index").write_text("./relay.000007\n./relay.000008\n./relay.000009\n")
    (tmp_path / "relay-other.index").write_text("./relay-other.000001\n")
    assert _names(tmp_path) == ["b.000002"]
    assert "lists relay.000007, which cannot be found" in _refusal(tmp_path / "relay.index")
    # Without a binary log, the only relay log is what is read; of two, one must be selected.
    (tmp_path / "b.index").unlink()
    assert "more than one index file" in _refusal(tmp_path)
    (tmp_path / "relay.index").unlink()
    assert _names(tmp_path) == ["relay-other.000001"]


@pytest.mark.parametrize(
    "other",
    [
        _log,
        lambda path: _log(path, RELAY, magic=b"\xfdbin"),  # encrypted: not to be seen
        lambda path: path.write_bytes(b"\xfebin" + b"\x40" * 18),
        lambda _: None,
    ],
    ids=["another binary log", "encrypted", "cut", "absent"],
)
def test_logs_that_are_not_seen_to_be_relay_logs_are_asked_back(
    other: Callable[[Path], object], tmp_path: Path
) -> None:
    _log(tmp_path / "b.000001")
    other(tmp_path / "c.000001")
    _log(tmp_path / "relay.000001", RELAY)
    for name in ("b", "c", "relay"):
        (tmp_path / f"{name}.index").write_text(f"./{name}.000001\n")
    said = _refusal(tmp_path)
    assert said.endswith(f"select one of them: {tmp_path / 'b.index'}, {tmp_path / 'c.index'}")


def test_limits_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(tmp_path, "b.000001", "b.000002")
    monkeypatch.setattr(logs_from_operands, "FILES_MAX", 1)
    assert "2 files, more than the limit of 1" in _refusal(folder)
    monkeypatch.setattr(logs_from_operands, "INDEX_BYTES_MAX", 3)
    (folder / "b.index").write_text("./b.000001\n")
    assert "larger than the limit of 3 bytes" in _refusal(folder)


def test_a_server_is_looked_up_as_for_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", "s3cret")
    found = read_log_operand("mysql://dba@db1:3307/")
    assert isinstance(found, LogServer)
    assert found.name == "db1:3307"
    assert found.target.user == "dba"
    assert found.target.password.reveal() == "s3cret"
    assert "s3cret" not in repr(found)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InventoryProblem) as caught:
        read_log_operand("mysql://dba:s3cret@db1/")
    assert "s3cret" not in str(caught.value)


def test_a_password_is_asked_for_only_if_there_is_a_server(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000001")
    with pytest.raises(UsageProblem, match="none of the logs is on a server"):
        read_log_operands((str(folder),), ask=True)
    with pytest.raises(UsageProblem, match="needs a terminal"):
        read_log_operands(("mysql://dba@db1/",), ask=True)


def test_files_are_read_once_and_not_beside_a_server(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "b.000001", "b.000002")
    both = read_log_operands((str(folder / "b.000002"), str(folder)))
    assert [path.name for path in paths_of(both)] == ["b.000002", "b.000001"]
    server = read_log_operand("mysql://dba@db1/")
    assert one_source((server,)) == server
    assert one_source(both) == paths_of(both)
    with pytest.raises(UsageProblem, match="cannot be read together with files"):
        one_source((*both, server))
    with pytest.raises(UsageProblem, match="more than one server"):
        one_source((server, server))
