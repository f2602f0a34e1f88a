"""Reading what consumers store: every way in which a file or a command can fail is a reason."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gtid import GtidSet
from tests.snapshots import A
from topology.adapters import consumer_reads
from topology.adapters.collect import CollectLimits, collect_cluster
from topology.adapters.consumer_reads import read_first, read_last
from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.recorded_servers import MemoryReader, Prepared
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.snapshot import UnreadFact, UnreadReason
from topology.readings.target import Secret, ServerTarget

STORED = f'{{"file": "b.000003", "pos": 4, "gtids": "{A}:1-5"}}'
EXPECTED = GtidSet.parse(f"{A}:1-5")
SECONDS = 5.0


def from_file(path: Path) -> ConsumerSource:
    return ConsumerSource("cdc", file=path)


def from_command(*command: str, directory: Path | None = None) -> ConsumerSource:
    return ConsumerSource("cdc", command=command, directory=directory)


def shell(text: str) -> ConsumerSource:
    return from_command("sh", "-c", text)


def first_of(source: ConsumerSource, *, seconds: float = SECONDS) -> OfferedReading:
    return read_first([source], seconds_max=seconds)["cdc"]


def reason_of(source: ConsumerSource, *, seconds: float = SECONDS) -> str:
    found = first_of(source, seconds=seconds)
    assert found.gtid_set is None
    return found.unread


def test_a_set_comes_from_the_fleet_file_a_file_or_a_command(tmp_path: Path) -> None:
    (tmp_path / "offset.json").write_text(STORED)
    for source in (
        ConsumerSource("cdc", gtid_set=EXPECTED),
        from_file(tmp_path / "offset.json"),
        from_command("cat", "offset.json", directory=tmp_path),
        from_command("cat", str(tmp_path / "offset.json")),
    ):
        found = first_of(source)
        assert (found.gtid_set, found.unread) == (EXPECTED, "")


def test_a_source_has_exactly_one_place() -> None:
    with pytest.raises(ValueError, match="exactly one of a set, a file and a command"):
        ConsumerSource("cdc")
    with pytest.raises(ValueError, match="exactly one of a set, a file and a command"):
        ConsumerSource("cdc", file=Path("x"), command=("cat", "x"))


def test_the_place_shows_no_argument_of_a_command() -> None:
    source = from_command("/usr/bin/curl", "--user", "me:secret")
    assert source.place == "the command curl"
    assert "secret" not in reason_of(from_command("/bin/false", "secret"))


def absent(path: Path) -> ConsumerSource:
    return from_file(path / "none")


def a_directory(path: Path) -> ConsumerSource:
    return from_file(path)


def a_pipe(path: Path) -> ConsumerSource:
    os.mkfifo(path / "pipe")
    return from_file(path / "pipe")


def bytes_of(content: bytes) -> Callable[[Path], ConsumerSource]:
    def made(path: Path) -> ConsumerSource:
        (path / "stored").write_bytes(content)
        return from_file(path / "stored")

    return made


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (absent, "No such file or directory"),
        (a_directory, "not a regular file"),
        (a_pipe, "not a regular file"),
        (bytes_of(b""), "it is empty"),
        (bytes_of(b"  \n"), "it is empty"),
        (bytes_of(b"\xff\xfe"), "not UTF-8 at byte 0"),
        (bytes_of(b"hello"), "expected a UUID at character 0"),
        (bytes_of(f"{A}:1-5,\n".encode()), "the end may be missing"),
        (bytes_of(b'{"gtids": "' + str(A).encode()), "JSON that cannot be read"),
        (bytes_of(f'{{"gtids": "{A}:1-5"}}\n{{"gtids": "{A}:1-6"}}'.encode()), "different sets"),
    ],
)
def test_a_file_without_a_set_is_a_reason_with_its_path(
    made: Callable[[Path], ConsumerSource], reason: str, tmp_path: Path
) -> None:
    found = reason_of(made(tmp_path))
    assert found.startswith(str(tmp_path))
    assert reason in found


def test_a_file_beyond_the_limit_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_reads, "STORED_BYTES_MAX", 60)
    (tmp_path / "dump.sql").write_text(f"SET @@GLOBAL.GTID_PURGED='{A}:1-5';\n" + "x" * 100)
    assert "more than the limit of 60 bytes; for a dump, use a command" in reason_of(
        from_file(tmp_path / "dump.sql")
    )
    head = from_command("head", "-c", "60", str(tmp_path / "dump.sql"))
    assert "more than" not in first_of(head).unread
    assert "more than the limit of 60 bytes" in reason_of(from_command("yes"))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (from_command("/no/such/program"), "the command program: No such file or directory"),
        (shell("exit 3"), "the command sh: exit status 3"),
        (shell("echo one >&2; echo two >&2; exit 1"), "the command sh: exit status 1: two"),
        (shell("kill -9 $$"), "the command sh: ended by signal 9"),
        (shell(f"echo {A}:1-5; exit 1"), "the command sh: exit status 1"),
        (from_command("echo", "hello"), "the command echo: expected a UUID"),
        (from_command("true"), "the command true: it is empty"),
        (shell(r"printf '\033[31m\n' >&2; exit 1"), "exit status 1:  [31m"),
    ],
)
def test_a_command_that_fails_is_a_reason(source: ConsumerSource, reason: str) -> None:
    assert reason in reason_of(source)


@pytest.mark.long
@pytest.mark.parametrize(
    "text", ["exec sleep 60", "sleep 60 & sleep 60", "exec >&- 2>&-; sleep 60"]
)
def test_a_command_that_hangs_costs_its_time_and_is_ended(text: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    shown = tmp_path / "pid"
    found = reason_of(shell(f"echo $$ > {shown}; {text}"), seconds=2)
    assert found == "the command sh: no answer within 2 seconds"
    assert time.monotonic() - begun < SECONDS
    group = int(shown.read_text())
    deadline = time.monotonic() + SECONDS
    while is_alive(group):
        assert time.monotonic() < deadline, "its children were not ended"
        time.sleep(0.01)


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_command_has_no_input_and_no_shell() -> None:
    assert "it is empty" in reason_of(from_command("cat"))
    assert "$HOME" in first_of(from_command("echo", "$HOME")).unread


@pytest.mark.long
def test_consumers_are_read_at_the_same_time() -> None:
    sources = [
        ConsumerSource(f"c{number}", command=("sh", "-c", f"sleep 0.5; echo {A}:1-5"))
        for number in range(6)
    ]
    begun = time.monotonic()
    found = read_first(sources, seconds_max=SECONDS)
    assert {each.gtid_set for each in found.values()} == {EXPECTED}
    assert time.monotonic() - begun < 6 * 0.5


def test_a_password_is_hidden_in_what_a_command_says() -> None:
    found = read_first(
        [shell("echo bad password: hunter2 >&2; exit 1")],
        seconds_max=SECONDS,
        secrets=[Secret("hunter2")],
    )
    assert "hunter2" not in found["cdc"].unread
    assert "bad password" in found["cdc"].unread


def test_a_defect_of_ours_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise KeyError("boom")

    monkeypatch.setattr(consumer_reads, "_output_of", broken)
    assert reason_of(from_command("cat")) == "defect of the auditor: KeyError: 'boom'"


def both(source: ConsumerSource) -> ConsumerReading:
    first = read_first([source], seconds_max=SECONDS)
    [found] = read_last([source], first, seconds_max=SECONDS)
    return found


def test_what_failed_at_first_is_not_read_again(tmp_path: Path) -> None:
    counted = tmp_path / "count"
    found = both(shell(f"echo run >> {counted}; exit 1"))
    assert found.unread == "the command sh: exit status 1"
    assert counted.read_text() == "run\n"


def test_what_fails_the_second_time_is_unread(tmp_path: Path) -> None:
    once = tmp_path / "once"
    found = both(shell(f"test ! -e {once} || exit 4; touch {once}; echo {A}:1-5"))
    assert found.first.gtid_set == EXPECTED
    assert found.unread == "the command sh: exit status 4"


def test_a_cluster_reads_its_consumers_before_and_after_its_servers(tmp_path: Path) -> None:
    """The order of the readings is what P4 concludes from."""
    noted = tmp_path / "noted"
    target = ServerTarget("a", "a.example", 3306, "auditor", Secret(""))
    fact = UnreadFact("connection", UnreadReason.TIMEOUT, "no answer")
    prepared = {1: (Prepared(fact),), 2: (Prepared(fact),)}
    begun = datetime.now(UTC)
    found = collect_cluster(
        "shop",
        [target],
        limits=CollectLimits(server_seconds_max=SECONDS, looks_max=1, pause_seconds=0),
        open_reader=lambda one: MemoryReader(one, "shop", prepared),
        consumers=[shell(f"date +%s%N >> {noted}; echo {A}:1-5")],
    )
    [consumer] = found.consumers
    assert begun <= consumer.first.read_at <= found.first[0].read_started
    assert found.last[0].read_ended <= consumer.last.read_at
    assert len(noted.read_text().splitlines()) == 2
    assert not consumer.is_fixed
