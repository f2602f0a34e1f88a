"""What audits of the service keep for the next ones: in memory, and in the history file."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from gtid import Gtid, GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.history_memory import OF_THE_FLEET, HistoryMemory
from gtid_audit.tasks.kept_history import KeptHistory, history_at
from gtid_audit.tasks.served_history import ServedHistory
from gtid_audit.tasks.served_memory import LOOKS_STORED_SECONDS, ServedMemory
from tests.gtid_audit.build import healthy, holed
from tests.snapshots import NOON, A
from topology.adapters.history_file import HistoryFile
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.questions.contents_to_compare import KnownDifference, Remembered
from topology.readings.contents import ContentDifference, Difference, TransactionVersion

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
SUSPECT = GtidSet.parse(f"{A}:7")


def known_difference() -> KnownDifference:
    a, b = (
        TransactionVersion(name, "binlog.000001:4", NOON, NOON, "insert into t") for name in "ab"
    )
    gtid = Gtid.parse(f"{A}:1")
    return KnownDifference(ContentDifference(gtid, Difference.CONTENT, True, "", a, b), (ONE, TWO))


def test_audits_that_overlap_do_not_take_back_what_the_other_remembers() -> None:
    memory = ServedMemory()
    a, b = memory.of_cluster("a"), memory.of_cluster("b")
    before_a, before_b = a.read(), b.read()
    later = NOON + timedelta(minutes=1)
    b.write(replace(before_b, looks={TWO: later}, suspects={"b": SUSPECT}))
    a.write(replace(before_a, looks={ONE: NOON}))
    assert memory.read("new") == Remembered({ONE: NOON, TWO: later}, {"b": SUSPECT}, {})


def test_an_entry_that_an_audit_removes_is_gone() -> None:
    memory = ServedMemory()
    memory.of_cluster("a").write(Remembered({ONE: NOON}, {"a": SUSPECT}, {}))
    again = memory.of_cluster("a")
    again.write(replace(again.read(), suspects={}))
    assert memory.read("a") == Remembered({ONE: NOON}, {}, {})


def test_a_cluster_is_given_the_looks_of_its_servers_and_all_differences() -> None:
    memory = ServedMemory()
    differences = {"a": (known_difference(),)}
    memory.of_cluster("a").write(Remembered({ONE: NOON, TWO: NOON}, {}, differences))
    b = memory.of_cluster("b")
    first = b.read()
    assert first.looks == {ONE: NOON, TWO: NOON}, "before its first audit: those of all"
    b.write(replace(first, looks={**first.looks, THREE: NOON}))
    assert memory.read("b").looks == {THREE: NOON}
    assert memory.read("a").looks == {ONE: NOON, TWO: NOON}
    assert memory.read("b").differences == differences, "a pair may move to another cluster"
    unreachable = memory.of_cluster("a")
    later = NOON + timedelta(hours=1)
    unreachable.write(replace(unreachable.read(), looks={ONE: later, TWO: NOON}))
    assert memory.read("a").looks == {ONE: later, TWO: NOON}, "the server that was not read stays"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history"


def history_in(file: Path) -> ServedHistory:
    kept = history_at(file, of_servers=False)
    assert kept is not None
    return ServedHistory(kept)


def memory_in(file: Path, scope: str = OF_THE_FLEET) -> HistoryMemory:
    return HistoryMemory(HistoryFile.at(file), scope)


def test_the_memory_outlives_the_process(file: Path) -> None:
    memory = ServedMemory(memory_in(file))
    differences = {"a": (known_difference(),)}
    memory.of_cluster("a").write(Remembered({ONE: NOON}, {"a": SUSPECT}, differences))
    assert ServedMemory(memory_in(file)).read("a") == Remembered(
        {ONE: NOON}, {"a": SUSPECT}, differences
    )
    cleared = memory.of_cluster("a")
    cleared.write(replace(cleared.read(), suspects={}, differences={}))
    assert ServedMemory(memory_in(file)).read("a") == Remembered({ONE: NOON}, {}, {})


def test_a_look_is_stored_from_time_to_time(file: Path) -> None:
    memory = ServedMemory(memory_in(file))
    for seconds in (0, LOOKS_STORED_SECONDS - 1):
        memory.of_cluster("a").write(Remembered({ONE: NOON + timedelta(seconds=seconds)}))
    assert memory_in(file).load().looks == {ONE: NOON}
    later = NOON + timedelta(seconds=LOOKS_STORED_SECONDS)
    memory.of_cluster("a").write(Remembered({ONE: later}))
    assert memory_in(file).load().looks == {ONE: later}


def test_what_was_reported_of_a_server_is_stored_and_removed(file: Path) -> None:
    memory = ServedMemory(memory_in(file))
    one = memory.of_cluster("a")
    assert one.read().reported == {}
    one.write(Remembered(reported={ONE: SUSPECT, TWO: SUSPECT}))
    assert ServedMemory(memory_in(file)).read("b").reported == {ONE: SUSPECT, TWO: SUSPECT}
    assert one.read().reported == {ONE: SUSPECT, TWO: SUSPECT}
    one.write(Remembered(reported={TWO: SUSPECT}))
    assert memory.read("a").reported == {TWO: SUSPECT}
    assert memory_in(file).load() == Remembered(reported={TWO: SUSPECT})


def test_what_another_audit_settles_takes_nothing_else_back(file: Path) -> None:
    """An audit settles suspects of every cluster, which it has read earlier (a cluster renamed)."""
    memory = ServedMemory(memory_in(file))
    six, seven = (GtidSet.parse(f"{ONE}:{number}") for number in (6, 7))
    memory.of_cluster("a").write(Remembered(suspects={"a": six}))
    one, other = memory.of_cluster("a"), memory.of_cluster("b")
    assert one.read().suspects == other.read().suspects == {"a": six}
    one.write(Remembered(suspects={"a": six | seven}))
    other.write(Remembered(suspects={}))
    assert memory.read("a").suspects == memory_in(file).load().suspects == {"a": seven}


def test_the_service_knows_what_another_process_adds_to_the_file(file: Path) -> None:
    """A nightly audit has the same file."""
    served = ServedMemory(memory_in(file))
    of_cluster = served.of_cluster("a")
    before = of_cluster.read()
    nightly = KeptHistory(HistoryFile(file), of_servers=False).memory_of_fleet()
    differences = {"a": (known_difference(),)}
    nightly.write(replace(nightly.read(), differences=differences, reported={ONE: SUSPECT}))
    assert served.read("a").differences == differences
    more = GtidSet.parse(f"{A}:9")
    of_cluster.write(replace(before, suspects={"a": SUSPECT}, reported={ONE: more}))
    everything = Remembered({}, {"a": SUSPECT}, differences, {ONE: SUSPECT | more})
    assert served.read("a") == memory_in(file).load() == everything


def test_servers_of_a_command_line_have_a_memory_of_their_own(file: Path) -> None:
    kept = KeptHistory(HistoryFile.at(file), of_servers=True)
    pairs = [kept.memory_of_servers("pair", names) for names in (("a", "b"), ("a", "c"))]
    pairs[0].read()
    differences = {"pair": (known_difference(),)}
    pairs[0].write(Remembered({ONE: NOON}, {"pair": SUSPECT}, differences, {TWO: SUSPECT}))
    # All audits with the file share what they found of these servers.
    shared = Remembered({}, {}, differences, {TWO: SUSPECT})
    assert pairs[1].read() == kept.memory_of_fleet().read() == shared
    again = kept.memory_of_servers("pair", ("b", "a"))
    assert again.read() == replace(shared, looks={ONE: NOON}, suspects={"pair": SUSPECT})
    again.write(Remembered({ONE: NOON}))
    assert pairs[0].read() == Remembered({ONE: NOON})
    assert pairs[1].read() == Remembered()


def test_an_audit_that_changes_nothing_writes_nothing(file: Path) -> None:
    memory = memory_in(file)
    memory.merge(Remembered(), Remembered(reported={ONE: SUSPECT}))
    file.chmod(0o400)
    with closing(sqlite3.connect(file)) as locking:
        locking.execute("BEGIN IMMEDIATE")
        memory.merge(memory.load(), memory.load())
    assert memory.load() == Remembered(reported={ONE: SUSPECT})


def test_a_file_of_an_earlier_version_has_no_memory_and_gets_one(file: Path) -> None:
    HistoryFile.at(file)
    with closing(sqlite3.connect(file)) as database, database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    assert "remembered" not in tables
    memory = memory_in(file)
    assert memory.load() == Remembered()
    memory.merge(Remembered(), Remembered({ONE: NOON}))
    assert memory.load() == Remembered({ONE: NOON})
    assert memory.load(looks=False) == Remembered()
    assert HistoryFile(file).episodes() == ()


def test_a_damaged_memory_is_refused(file: Path) -> None:
    memory_in(file).merge(Remembered(), Remembered({ONE: NOON}))
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE remembered SET value = 'soon'")
    with pytest.raises(UsageProblem, match="not a record of earlier audits"):
        ServedMemory(memory_in(file))


def test_audits_that_end_together_are_recorded_once_each(file: Path) -> None:
    history = history_in(file)
    names = [f"c{number:02}" for number in range(20)]
    dated: list[ClusterAudit] = []

    def record(name: str) -> None:
        dated.append(history.dated(audit_cluster(holed(name))))

    threads = [threading.Thread(target=record, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(each.cluster for each in dated) == names
    assert {each.cluster for each in HistoryFile(file).episodes()} == set(names)
    codes = {each.code for each in history.open_findings("c07")}
    assert codes == {each.code for each in audit_cluster(holed("c07")).findings}
    assert history.open_findings("other") == ()


def test_every_audit_of_a_transaction_that_fails_is_told(file: Path) -> None:
    history = history_in(file)
    file.write_bytes(b"not SQLite" * 100)
    with pytest.raises(UsageProblem, match="not a SQLite file"):
        history.dated(audit_cluster(healthy()))
    with pytest.raises(UsageProblem, match="not a SQLite file"):
        history.open_findings("pair")
