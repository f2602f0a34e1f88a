"""What an audit with --out remembers of its looks at contents, and what it must not."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from compose import faults, faults_content
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import Gtid, GtidSet
from gtid_audit.cli import run
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks import fleet_contents as content_fleet
from gtid_audit.tasks.compared_restarts import LOOKS, DirectoryMemory
from gtid_audit.tasks.merged_memory import merged
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import A, B, with_facts
from tests.topology.test_compare_contents import NOON, started
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet import Fleet
from topology.audit_cluster import audit_cluster
from topology.policy import Policy
from topology.questions import contents_to_compare
from topology.questions.contents_to_compare import (
    KnownDifference,
    Looked,
    Remembered,
    held_by_two,
    suspects_in,
)
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

FLEET = Fleet((), CollectLimits(), 1, Policy())


def test_what_is_remembered_is_kept(tmp_path: Path) -> None:
    memory = DirectoryMemory(tmp_path)
    assert DirectoryMemory(tmp_path / "nowhere").read() == Remembered()
    looks = {B: NOON, A: NOON + timedelta(microseconds=7)}
    suspects = {"shop": GtidSet.parse(f"{A}:7:9-11"), "crm": GtidSet.parse(f"{B}:1")}
    known = (KnownDifference(a_difference(), (A, B)), KnownDifference(a_difference(), (B, A)))
    differences = {"shop": known, "crm": known[:1]}
    reported = {B: GtidSet.parse(f"{A}:7"), A: GtidSet.parse(f"{B}:1")}
    memory.write(Remembered(looks, suspects, differences, reported))
    assert memory.read() == Remembered(looks, suspects, differences, reported)
    written = (tmp_path / LOOKS).read_text()
    turned = [dict(reversed(each.items())) for each in (looks, suspects, differences, reported)]
    memory.read()
    memory.write(Remembered(*turned))  # type: ignore[arg-type]  # four kinds of mapping in a list
    assert (tmp_path / LOOKS).read_text() == written
    assert sorted(file.name for file in tmp_path.iterdir()) == [LOOKS, f"{LOOKS}.lock"]


def test_an_audit_that_began_earlier_takes_nothing_back(tmp_path: Path) -> None:
    """It waited for a server of another cluster, and knows nothing of what was stored since."""
    one, two = KnownDifference(a_difference(), (A, B)), KnownDifference(a_difference(), (B, A))
    six, seven = (GtidSet.parse(f"{A}:{number}") for number in (6, 7))
    DirectoryMemory(tmp_path).write(
        Remembered({A: NOON}, {"shop": six}, {"shop": (one,)}, {B: six})
    )
    early, late = DirectoryMemory(tmp_path), DirectoryMemory(tmp_path)
    before = early.read()
    late.read()
    since = NOON + timedelta(minutes=1)
    both = six | seven
    late.write(Remembered({A: since}, {"shop": both}, {"shop": (one, two)}, {B: both, A: seven}))
    # Nothing new: all of it stays. Then what early has settled goes, and no more.
    early.write(replace(before, looks={A: NOON, B: NOON}))
    assert DirectoryMemory(tmp_path).read() == Remembered(
        {A: since, B: NOON}, {"shop": both}, {"shop": (one, two)}, {B: both, A: seven}
    )
    early.write(Remembered({A: NOON}, {}, {}, {}))
    assert DirectoryMemory(tmp_path).read() == Remembered(
        {A: since, B: NOON}, {"shop": seven}, {"shop": (two,)}, {B: seven, A: seven}
    )


def test_what_another_audit_settled_stays_settled() -> None:
    """An audit that still remembers it, and adds something, had read it before."""
    one, two = KnownDifference(a_difference(), (A, B)), KnownDifference(a_difference(), (B, A))
    six, seven = (GtidSet.parse(f"{A}:{number}") for number in (6, 7))
    before = Remembered({A: NOON}, {"shop": six}, {"shop": (one,)}, {B: six})
    soon, later = (NOON + timedelta(minutes=minutes) for minutes in (1, 2))
    after = Remembered({A: soon}, {"shop": six | seven}, {"shop": (one, two)}, {B: six | seven})
    settled = Remembered({A: later})
    assert merged(before, after, settled) == Remembered(
        {A: later}, {"shop": seven}, {"shop": (two,)}, {B: seven}
    )
    # Both have added the same.
    both = replace(settled, differences={"shop": (two,)})
    assert merged(before, after, both).differences == {"shop": (two,)}


def test_what_an_audit_adds_is_stored_beside_the_rest(tmp_path: Path) -> None:
    DirectoryMemory(tmp_path).write(Remembered(suspects={"crm": GtidSet.parse(f"{B}:1")}))
    blind = DirectoryMemory(tmp_path)  # it has read nothing
    blind.write(Remembered(suspects={"shop": GtidSet.parse(f"{A}:1")}))
    assert {*DirectoryMemory(tmp_path).read().suspects} == {"crm", "shop"}


def test_what_was_kept_before_there_were_suspects_is_read(tmp_path: Path) -> None:
    text = f'{{"layout": 1, "looked_at": {{"{A}": "2026-01-02T12:00:00.000000Z"}}}}'
    (tmp_path / LOOKS).write_text(text)
    assert DirectoryMemory(tmp_path).read() == Remembered({A: NOON}, {})
    (tmp_path / LOOKS).unlink()
    kept = Remembered(differences={"pair": (KnownDifference(a_difference(), (A, B)),)})
    DirectoryMemory(tmp_path).write(kept)
    document = json.loads((tmp_path / LOOKS).read_text())
    for field in ("lesser", "is_two_commits", "is_remembered"):  # which came later
        del document["differences"]["pair"][0]["difference"][field]
    (tmp_path / LOOKS).write_text(json.dumps(document))
    assert DirectoryMemory(tmp_path).read() == kept


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "\x00", '{"layout": 2}', '{"layout": 1, "looked_at": []}'),
        '{"layout": 1, "looked_at": {"x": "y"}}',
        f'{{"layout": 1, "looked_at": {{"{A}": 5}}}}',
        '{"layout": 1, "looked_at": {}, "suspects": {"shop": "?"}}',
        '{"layout": 1, "looked_at": {}, "suspects": ["shop"]}',
        '{"layout": 1, "looked_at": {}, "differences": {"shop": [{}]}}',
        '{"layout": 1, "looked_at": {}, "reported": {"shop": "?"}}',
    ],
)
def test_what_is_no_record_of_looks_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / LOOKS).write_text(text)
    with pytest.raises(UsageProblem, match=LOOKS):
        DirectoryMemory(tmp_path).read()
    with pytest.raises(UsageProblem, match="directory"):
        DirectoryMemory(tmp_path / "nowhere").write(Remembered())


def looked(
    snapshot: ClusterSnapshot,
    answer: Looked | Exception,
    monkeypatch: pytest.MonkeyPatch,
    *,
    chosen: bool | None = None,
    remembered: Remembered | None = None,
) -> content_fleet.FleetContents:
    def read(*_args: object, **_named: object) -> Looked:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("topology.adapters.compare_contents.read_contents", read)
    return content_fleet.compare_contents(
        {}, [snapshot], chosen, policy=FLEET.policy, remembered=remembered or Remembered()
    )


def test_a_look_that_could_not_be_made_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = started(healthy(), 10, 10)
    reading = ContentReading(NOON, 4, (), (), ())
    both = {A: recent.last[0].read_started, B: recent.last[1].read_started}
    cases: list[tuple[Looked | Exception, set[UUID]]] = [
        (Looked(reading), {A, B}),
        (Looked(reading, frozenset({"a"})), {B}),
        (Looked(None, frozenset({"a", "b"})), set()),
        (RuntimeError("ours"), set()),
    ]
    for answer, remembered in cases:
        found = looked(recent, answer, monkeypatch)
        assert found.remembered.looks == {uuid: both[uuid] for uuid in remembered}
    unasked = looked(recent, Looked(reading), monkeypatch, chosen=False)
    assert (unasked.readings, unasked.remembered) == (None, Remembered())


def test_who_was_not_due_has_been_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    never = AssertionError("nothing is due")
    found = looked(started(healthy(), 10**6, 10**6), never, monkeypatch)
    assert found.readings == {}
    assert found.remembered.looks.keys() == {A, B}
    found = looked(half_read(), never, monkeypatch)
    assert B not in found.remembered.looks
    unsure = started(healthy(), 10**6, 10**6)
    nameless = replace(unsure.last[0], uptime_seconds=None)
    found = looked(replace(unsure, last=(nameless, unsure.last[1])), never, monkeypatch)
    assert found.remembered.looks.keys() == {B}


def test_what_is_suspect_is_remembered_until_all_servers_hold_it_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """b has a transaction of a that a does not have; later a reaches its GTID."""
    isolated = GtidSet.parse(f"{A}:120")
    both = f"{A}:1-100,{B}:1-50"
    snapshot = healthy()
    long_up = started(snapshot, 10**6, 10**6)
    holder = replace(long_up.first[1], gtid_executed=GtidSet.parse(both) | isolated)
    ahead = replace(
        long_up,
        first=(long_up.first[0], holder),
        last=(
            long_up.last[0],
            replace(long_up.last[1], gtid_executed=holder.gtid_executed),
        ),
    )
    never = AssertionError("nothing is due")
    found = looked(ahead, never, monkeypatch)
    assert found.remembered.suspects == {"pair": isolated}
    unasked = looked(ahead, never, monkeypatch, chosen=False)
    assert unasked.remembered.suspects == {"pair": isolated}
    assert held_by_two(ahead, isolated) == GtidSet()
    found = looked(ahead, never, monkeypatch, remembered=found.remembered)  # still on one server
    reached = replace(
        ahead,
        first=tuple(replace(each, gtid_executed=holder.gtid_executed) for each in ahead.first),
        last=tuple(replace(each, gtid_executed=holder.gtid_executed) for each in ahead.last),
    )
    assert held_by_two(reached, isolated) == isolated
    differing = Looked(ContentReading(NOON, 1, (), (), ()), answered={("a", "b"): isolated})
    for _ in range(2):
        found = looked(reached, differing, monkeypatch, remembered=found.remembered)
        assert found.readings == {"pair": differing.reading}
        assert found.remembered.suspects == {"pair": isolated}
    alike = replace(differing, settled=isolated)
    found = looked(reached, alike, monkeypatch, remembered=found.remembered)
    assert found.remembered.suspects == {}
    other = Remembered({}, {"another": isolated})
    assert looked(reached, never, monkeypatch, remembered=other).remembered.suspects == {
        "another": isolated
    }


def a_difference(kind: Difference = Difference.CONTENT) -> ContentDifference:
    """Return what an audit found under one GTID of a, which both servers have."""
    versions = [TransactionVersion(name, "binlog.000001:4", NOON, NOON, name) for name in "ab"]
    return ContentDifference(
        Gtid.parse(f"{A}:7"),
        kind,
        is_proved=True,
        reason="two commits",
        source=versions[0],
        replica=versions[1],
    )


def of_pair(*differences: ContentDifference, compared: str = "") -> Looked:
    gtids = GtidSet.parse(compared)
    reading = ContentReading(NOON, gtids.gtid_count, (), differences, ())
    return Looked(reading, answered={("a", "b"): gtids})


def test_a_proved_difference_stays_whatever_the_logs_show(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = started(healthy(), 10**6, 10**6)
    found = looked(
        started(healthy(), 10, 10), of_pair(a_difference(), compared=f"{A}:7"), monkeypatch
    )
    [known] = found.remembered.differences["pair"]
    assert known == KnownDifference(a_difference(), (A, B))
    for answer in (of_pair(compared=f"{A}:8"), Looked(None), Looked(None)):  # the log was purged
        found = looked(snapshot, answer, monkeypatch, remembered=found.remembered)
        assert found.remembered.differences == {"pair": (known,)}
        assert found.readings is not None
        [carried] = found.readings["pair"].differences
        assert (carried.difference, carried.is_proved) == (Difference.CONTENT, False)
        assert carried.reason.startswith("two commits; proved by an earlier audit")
        assert carried.is_remembered
    again = looked(
        snapshot,
        of_pair(a_difference(), compared=f"{A}:7"),
        monkeypatch,
        remembered=found.remembered,
    )
    assert again.readings == {"pair": of_pair(a_difference(), compared=f"{A}:7").reading}
    assert again.remembered.differences == {"pair": (known,)}
    # Both logs agree after a RESET, whatever rows are there.
    redone = replace(a_difference(Difference.COMMIT), is_proved=False)
    for answer in (of_pair(compared=f"{A}:7"), of_pair(redone, compared=f"{A}:7")):
        alike = looked(snapshot, answer, monkeypatch, remembered=found.remembered)
        assert alike.remembered.differences == {"pair": (known,)}
        assert alike.readings is not None
        [carried] = alike.readings["pair"].differences
        assert (carried.difference, carried.is_proved) == (Difference.CONTENT, False)
        assert "both logs have the same transaction now" in carried.reason
    # Shown again, without commit times that prove it: reported as it is now, and kept.
    unproved = replace(a_difference(), is_proved=False)
    undated = of_pair(unproved, compared=f"{A}:7")
    shown = looked(snapshot, undated, monkeypatch, remembered=found.remembered)
    assert shown.readings == {"pair": undated.reading}
    assert shown.remembered.differences == {"pair": (known,)}
    unasked = looked(snapshot, Looked(None), monkeypatch, chosen=False, remembered=found.remembered)
    assert unasked.remembered.differences == {"pair": (known,)}


def test_a_difference_is_between_server_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = started(healthy(), 10**6, 10**6)
    a, b = snapshot.last
    known = Remembered(differences={"pair": (KnownDifference(a_difference(), (A, B)),)})

    def found_with(*last: ServerSnapshot) -> content_fleet.FleetContents:
        now = replace(snapshot, first=snapshot.first[: len(last)], last=last)
        return looked(now, Looked(None), monkeypatch, remembered=known)

    # Rebuilt, left out, or another server for once: it is kept until it is seen again.
    for last in ((a, replace(b, server_uuid=UUID(int=7))), (a,)):
        found = found_with(*last)
        assert (found.readings, found.remembered.differences) == ({}, known.differences)
    # Reset: it may get its former gtid_purged back, with the rows that it had.
    without = found_with(a, replace(b, gtid_executed=GtidSet()))
    assert (without.readings, without.remembered.differences) == ({}, known.differences)
    back = found_with(a, b)
    assert back.readings is not None
    [carried] = back.readings["pair"].differences
    assert carried.is_remembered
    silent = found_with(a, with_facts(b, server_uuid=None, gtid_executed=None))
    assert silent.remembered.differences == known.differences


def test_a_name_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server or a cluster that was renamed in the fleet file once lost its differences."""
    snapshot = started(healthy(), 10**6, 10**6)
    known = Remembered(differences={"pair": (KnownDifference(a_difference(), (A, B)),)})
    names = {"a": "a", "b": "x"}
    first, last = (
        tuple(replace(each, cluster="two", name=names[each.name]) for each in reading)
        for reading in (snapshot.first, snapshot.last)
    )
    renamed = ClusterSnapshot("two", first, last)
    for _ in range(2):
        found = looked(renamed, Looked(None), monkeypatch, remembered=known)
        assert found.readings is not None
        [carried] = found.readings["two"].differences
        assert (carried.replica.server, carried.is_proved, carried.is_remembered) == (
            "x",
            False,
            True,
        )
        assert {*found.remembered.differences} == {"two"}
        known = found.remembered
    back = looked(snapshot, Looked(None), monkeypatch, remembered=known)
    assert back.readings is not None
    assert back.readings["pair"].differences[0].replica.server == "b"
    assert {*back.remembered.differences} == {"pair"}


def test_suspects_of_a_cluster_that_was_renamed_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = started(healthy(), 10**6, 10**6)
    held = snapshot.last[0].gtid_executed
    assert held is not None
    known = Remembered(suspects={"as it was called": held})
    compared: list[GtidSet] = []

    def read(*_args: object, suspects: GtidSet, **_named: object) -> Looked:
        compared.append(suspects)
        return Looked(None, settled=suspects)

    monkeypatch.setattr("topology.adapters.compare_contents.read_contents", read)
    found = content_fleet.compare_contents(
        {}, [snapshot], None, policy=FLEET.policy, remembered=known
    )
    assert compared == [held]
    assert found.remembered.suspects == {}


@pytest.mark.parametrize(
    ("uuid", "seen", "gtids"),
    [
        (UUID(int=7), {A}, [f"{A}:2:7"]),  # auto.cnf was removed, or it is a copy
        (UUID(int=7), {A, UUID(int=7)}, []),  # once is enough
        (B, {A}, [f"{A}:2:7"]),  # it is none of those that are away
        (None, {A}, [f"{A}:7"]),  # it was not read: by its name
    ],
)
def test_a_server_that_is_new_may_be_one_of_those_that_differed(
    uuid: UUID | None,
    seen: set[UUID],
    gtids: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = started(healthy(), 10**6, 10**6)
    a, b = snapshot.last
    if uuid is None:
        b = with_facts(b, server_uuid=None, gtid_executed=None)
    now = replace(snapshot, last=(a, replace(b, server_uuid=uuid)))
    lost = GtidSet.parse(f"{A}:2")
    known = Remembered(
        looks=dict.fromkeys(seen, NOON + timedelta(days=1)),
        differences={"pair": (KnownDifference(a_difference(), (A, B)),)},
        reported={B: lost | GtidSet.parse(f"{B}:77")},
    )
    compared: list[GtidSet] = []

    def read(*_args: object, suspects: GtidSet, **_named: object) -> Looked:
        compared.append(suspects)
        return Looked(None)

    monkeypatch.setattr("topology.adapters.compare_contents.read_contents", read)
    content_fleet.compare_contents({}, [now], None, policy=FLEET.policy, remembered=known)
    assert [str(each) for each in compared] == gtids


@pytest.mark.parametrize("kind", Difference)
def test_what_ends_by_itself_or_is_likely_is_not_kept(
    kind: Difference, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent = started(healthy(), 10, 10)
    ends = (Difference.AGAIN, Difference.UPKEEP, Difference.FILTERED, Difference.COMMIT)
    lasts = kind not in ends
    found = looked(recent, of_pair(a_difference(kind)), monkeypatch)
    assert bool(found.remembered.differences) is lasts
    likely = replace(a_difference(kind), is_proved=False)
    assert looked(recent, of_pair(likely), monkeypatch).remembered.differences == {}


def test_only_what_may_be_given_other_content_is_suspect() -> None:
    findings = audit_cluster(holed()).findings
    assert {each.code for each in findings} == {"H1"}
    assert suspects_in(holed(), findings) == GtidSet()


def fleet_of(pair: Pair, folder: Path) -> Path:
    file = folder / "fleet.yaml"
    servers = "".join(
        f"  - {{name: {name}, host: {server.host}, port: {server.port}, user: root}}\n"
        for name, server in pair.servers.items()
    )
    file.write_text(f"clusters:\n- name: shop\n  servers:\n{servers}")
    return file


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no server have restarted lately: the last day has no length."""
    monkeypatch.setattr(contents_to_compare, "RECENT", timedelta())


@pytest.mark.usefixtures("long_ago")
@pytest.mark.parametrize(
    "kept",
    [
        "--out",
        pytest.param("--snapshots", marks=pytest.mark.slow),
        pytest.param("--history", marks=pytest.mark.slow),
        "pair --history",
    ],
)
def test_a_gtid_made_by_hand_is_compared_once_its_origin_has_reached_it(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    """`--snapshots`: an audit of what `snapshot` has stored."""
    fleet, place = str(fleet_of(pair97, tmp_path)), str(tmp_path / "kept")

    def audited() -> dict[str, Any]:
        audit = ["audit", "--fleet", fleet, "--engine", "local", kept, place]
        if kept == "--snapshots":
            assert run(["snapshot", "--fleet", fleet, "--out", place]) == 0
        if kept == "pair --history":
            audit = ["pair", pair97.a.dsn, pair97.b.dsn, "--history", place]
        capsys.readouterr()
        run([*audit, "--json"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    made = faults_content.hand_made_gtid(pair97)
    assert {"E3", "H7"} & {each["code"] for each in audited()["findings"]}
    if "--history" not in kept:
        suspects = DirectoryMemory(Path(place)).read().suspects["shop"]
        assert suspects == GtidSet.parse(made.gtid)
    faults_content.reach(made)
    rows = [
        server.query("SELECT note FROM handmade.t ORDER BY id") for server in (pair97.a, pair97.b)
    ]
    assert rows[0] != rows[1]
    for _ in range(2):  # it stays in sight
        found = audited()
        [finding] = [each for each in found["findings"] if each["severity"] != "info"]
        assert (finding["code"], finding["severity"], finding["grade"]) == (
            *("E4", "critical"),
            "proved",
        )
        assert finding["gtid_set"] == made.gtid
        assert found["contents"][0]["suspect_count"] == 1
    # A purge repairs nothing.
    pair97.a.execute("FLUSH BINARY LOGS")
    faults.purge_until_gone(pair97.a, made.gtid)
    for _ in range(2):
        found = audited()
        [finding] = [each for each in found["findings"] if each["severity"] != "info"]
        assert (finding["code"], finding["severity"], finding["grade"]) == (
            *("E4", "critical"),
            "likely",
        )
        assert finding["gtid_set"] == made.gtid
        assert "proved by an earlier audit" in json.dumps(finding["evidence"])
    if kept == "--snapshots":
        return  # an audit evaluates what the snapshot compared
    # The rows are made alike, by hand, and the operator says so.
    pair97.b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM handmade.t")
    for row in pair97.a.query("SELECT id, note FROM handmade.t"):
        pair97.b.execute("SET SESSION sql_log_bin = 0", f"INSERT INTO handmade.t VALUES {row}")
    assert [each["code"] for each in audited()["findings"] if each["severity"] != "info"] == ["E4"]
    assert run(["history", place, "--forget", made.gtid]) == 0
    assert [each for each in audited()["findings"] if each["severity"] != "info"] == []


@pytest.mark.slow
def test_a_restart_since_the_last_audit_is_looked_behind_and_then_no_more(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As if all of it were long ago: the last day, which is looked at always, has no length."""
    monkeypatch.setattr(contents_to_compare, "RECENT", timedelta())
    fleet, out = fleet_of(pair97, tmp_path), tmp_path / "history"

    def audited(*options: str) -> tuple[list[str], set[str]]:
        """Return the codes that were found, and the servers whose starts were looked behind."""
        capsys.readouterr()
        run(["audit", "--fleet", str(fleet), "--engine", "local", "--json", *options])
        found = json.loads(capsys.readouterr().out)
        codes = [each["code"] for each in found["findings"] if each["severity"] != "info"]
        return codes, {start["server"] for each in found["contents"] for start in each["starts"]}

    def settled(server: Server) -> None:
        """Wait until a start is older than an uptime's whole seconds and a slow reading blur."""
        up = int(server.query("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])
        server.execute(f"DO SLEEP({max(0, 6 - up)})")

    kept = ("--out", str(out))
    settled(pair97.a)
    settled(pair97.b)
    assert audited(*kept)[0] == []
    assert set(DirectoryMemory(out).read().looks) == {
        UUID(server.value("@@GLOBAL.server_uuid")) for server in pair97.servers.values()
    }
    faults.reused_numbers(pair97)
    settled(pair97.a)
    assert audited() == ([], set())  # without a memory nobody knows of it
    assert audited(*kept) == (["E4"], {"a"})
    assert audited(*kept) == (["E4"], set())  # compared again: it is still so
