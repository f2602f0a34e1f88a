"""More than two servers: contents are compared along the channels, and of unlinked servers.

A restart is due on every channel whose servers hold transactions of the restarted server.
"""

import json
from pathlib import Path

import pytest

from compose import faults
from compose.native.command import Settings
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from gtid import GtidSet
from gtid_audit.cli import run


def fleet_of(star: Topology, folder: Path) -> Path:
    """Write a fleet file with the servers of a star."""
    fleet = folder / "fleet.yaml"
    servers = "".join(
        f"      - {{name: {name}, host: 127.0.0.1, port: {server.port}}}\n"
        for name, server in star.servers.items()
    )
    fleet.write_text(
        f"defaults: {{user: root}}\nclusters:\n  - name: star\n    servers:\n{servers}"
    )
    return fleet


def test_a_source_is_compared_with_each_of_its_replicas(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = star97["source"]
    source.kill()
    source.start()
    source.execute("CREATE DATABASE after_the_start")
    star97.settle()
    status = run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    [compared] = found["contents"]
    assert sorted(map(sorted, compared["pairs"])) == [
        ["replica1", "source"],
        ["replica2", "source"],
    ]
    assert {start["server"] for start in compared["starts"]} == {"source"}, "others have no own"
    assert compared["compared_count"] >= 2
    assert (compared["differing_count"], compared["unread"]) == (0, [])
    reused = _tree_with_two_contents(star97)
    status = run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    [finding] = found["findings"]
    assert (status, finding["code"], finding["severity"]) == (2, "E4", "critical")
    assert (finding["grade"], GtidSet.parse(finding["gtid_set"])) == ("proved", reused)
    assert (finding["source"], finding["replica"]) == ("replica1", "replica2")


def _tree_with_two_contents(star: Topology) -> GtidSet:
    """Let the source reuse lost GTIDs, and replica1 follow it while replica2 has the lost ones.

    Then make it source → replica1 → replica2: no two servers differ about what either committed.
    """
    source, first, second = (star[name] for name in ("source", "replica1", "replica2"))
    dialect = source.dialect
    first.execute(dialect.stop_replica)
    lost = faults.lost_tail_crash(star, source="source", replica="replica2")
    reused = faults.commit(source, *["INSERT INTO lost.t (note) VALUES ('after the crash')"] * 3)
    assert GtidSet.parse(reused) == GtidSet.parse(lost.lost)
    later = faults.commit(source, "CREATE DATABASE later")
    first.execute(dialect.start_replica)
    wait_for(first, later)
    second.execute(dialect.stop_replica, dialect.reset_replica)
    follow(second, first)
    wait_for(second, later)
    for replica in (first, second):
        faults.await_status(replica, lambda status: status["Replica_IO_Running"] == "Yes")
    return GtidSet.parse(reused)


def test_two_replicas_with_one_errant_gtid_are_compared_with_each_other(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their source has nothing under the GTIDs, so no channel leads to the difference."""
    star97["source"].execute("CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)")
    star97.settle()
    uuid = "11111111-2222-3333-4444-555555555555"
    for row, name in enumerate(("replica1", "replica2")):
        star97[name].execute(
            f"SET SESSION gtid_next = '{uuid}:1'",
            "CREATE DATABASE same_on_both",
            f"SET SESSION gtid_next = '{uuid}:2'",
            f"INSERT INTO s.t VALUES ({901 + row})",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    [finding] = [each for each in found["findings"] if each["code"] == "E4"]
    assert (finding["severity"], finding["gtid_set"]) == ("critical", f"{uuid}:2")
    assert {finding["source"], finding["replica"]} == {"replica1", "replica2"}
    assert "901" in str(finding["evidence"])
    assert "902" in str(finding["evidence"])


def test_a_replica_that_commits_again_has_the_same_rows_or_others(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The twins: on replica1 an earlier change of the row is applied afterwards. Not on replica2."""
    source, first, second = (star97[name] for name in ("source", "replica1", "replica2"))
    dialect = source.dialect
    minimal = "SET SESSION binlog_row_image = 'MINIMAL'"  # a full image shows the row before
    source.execute("CREATE DATABASE o", "CREATE TABLE o.t (id INT PRIMARY KEY, v INT)")
    source.execute("INSERT INTO o.t VALUES (1, 0)")
    star97.settle()
    for replica in (first, second):
        replica.execute(dialect.stop_applier)
    earlier = faults.commit(source, minimal, "UPDATE o.t SET v = 1 WHERE id = 1")
    later = faults.commit(source, minimal, "UPDATE o.t SET v = 2 WHERE id = 1")
    by_hand = (minimal, f"SET gtid_next = '{later}'", "UPDATE o.t SET v = 2 WHERE id = 1")
    first.execute(*by_hand)
    second.execute(f"{dialect.start_applier} UNTIL SQL_AFTER_GTIDS = '{earlier}'")
    wait_for(second, earlier)
    second.execute(*by_hand)
    for replica in (first, second):
        replica.execute(dialect.start_replica)
        wait_for(replica, source.value("@@GLOBAL.gtid_executed"))
    assert [each.value("v FROM o.t") for each in star97.servers.values()] == [2, 1, 2]
    run(["audit", "--content", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [
        (each["code"], each["severity"], each["grade"], each["replica"], each["gtid_set"])
        for each in found["findings"]
    ] == [("E4", "warning", "likely", name, later) for name in ("replica1", "replica2")]
    assert all("the order of the logs is not compared" in str(each) for each in found["findings"])


def test_an_unlinked_source_with_another_content_must_not_simply_join(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its sets allow it: only the content of its last transaction differs."""
    old = star97["source"]
    gtid = _failed_over(star97)
    fleet = str(fleet_of(star97, tmp_path))
    assert _codes(fleet, capsys, "--content") == {"J1": "proved"}
    _commit_again(old, gtid, "REPLACE INTO d.t VALUES (1, 2)")
    # Its gtid_purged was set: no log shows these rows either.
    assert _codes(fleet, capsys, "--no-content") == {"J1": "likely"}
    assert _codes(fleet, capsys, "--content") == {"J1": "likely", "E4": "proved"}
    status = run(["audit", "--fleet", fleet, "--json", "--content"])
    found = {each["code"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert (status, GtidSet.parse(found["E4"]["gtid_set"])) == (2, GtidSet.parse(gtid))
    assert (found["E4"]["source"], found["E4"]["replica"]) == ("replica1", "source")
    assert "Resolve E4 before it joins" in found["J1"]["explanation"]


def test_a_server_that_does_not_log_what_it_receives_hides_no_other_content(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new source has no log of it; its replica has, and is compared with the old source."""
    old, new = star97["source"], star97["replica1"]
    new.settings = Settings(extra=("--log-replica-updates=OFF",))
    new.restart()
    gtid = _failed_over(star97)
    _commit_again(old, gtid, "REPLACE INTO d.t VALUES (1, 2)")
    fleet = str(fleet_of(star97, tmp_path))
    assert _codes(fleet, capsys, "--content") == {"J1": "likely", "E4": "proved"}
    follow(old, new)  # as J1 without E4 said: nothing else shows the difference from then on
    faults.await_status(old, lambda status: status["Replica_IO_Running"] == "Yes")
    assert _codes(fleet, capsys, "--content") == {"E4": "proved"}


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [True, False])
def test_what_the_server_between_two_does_not_have_yet_is_compared(
    chain97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_same: bool
) -> None:
    """A GTID made by hand at the end of a chain, which the first server commits while middle waits.

    The benign twin is the same row, as after a redo by hand.
    """
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    wait_for(last, faults.commit(first, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)"))
    middle.execute("STOP REPLICA IO_THREAD")
    gtid = faults.commit(first, "INSERT INTO d.t VALUES (1)")
    value = 1 if is_same else 2
    last.execute(
        f"SET gtid_next = '{gtid}'",
        f"INSERT INTO d.t VALUES ({value})",
        "SET gtid_next = AUTOMATIC",
    )
    fleet = str(fleet_of(chain97, tmp_path))
    found = _codes(fleet, capsys, "--content")
    assert ("E4" in found) is not is_same, found


def _failed_over(star: Topology) -> str:
    """Let the replicas take over from the source; return the last GTID that it committed."""
    old, new, other = star["source"], star["replica1"], star["replica2"]
    faults.commit(old, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    gtid = faults.commit(old, "INSERT INTO d.t VALUES (1, 1)")
    star.settle()
    for replica in (new, other):
        replica.execute("STOP REPLICA", "RESET REPLICA ALL")
    follow(other, new)
    return gtid


def _commit_again(server: Server, gtid: str, statement: str) -> None:
    """Let a server forget its last transaction, and commit another one under its GTID."""
    before = GtidSet.parse(server.value("@@GLOBAL.gtid_executed")) - GtidSet.parse(gtid)
    server.execute("RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{before}'", statement)
    assert GtidSet.parse(gtid) <= GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def _codes(fleet: str, capsys: pytest.CaptureFixture[str], option: str) -> dict[str, str]:
    """Return the codes above info, with the grade of each."""
    capsys.readouterr()
    run(["audit", "--fleet", fleet, "--json", option])
    found = json.loads(capsys.readouterr().out)
    assert found["unknown"] == []
    return {each["code"]: each["grade"] for each in found["findings"] if each["severity"] != "info"}


def test_an_unlinked_source_that_reused_lost_gtids_is_found_by_default(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its restart is compared with what its former replicas have, as if a channel linked them."""
    lost = faults.lost_tail_crash(star97, source="source", replica="replica1")
    for name in ("replica1", "replica2"):
        star97[name].execute("STOP REPLICA", "RESET REPLICA ALL")
    follow(star97["replica2"], star97["replica1"])
    wait_for(star97["replica2"], lost.lost)
    reused = faults.commit(
        star97["source"], *["INSERT INTO lost.t (note) VALUES ('after the crash')"] * 3
    )
    assert GtidSet.parse(reused) == GtidSet.parse(lost.lost)
    run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = {each["code"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert GtidSet.parse(found["E4"]["gtid_set"]) == GtidSet.parse(reused)
    assert (found["E4"]["severity"], found["E4"]["grade"]) == ("critical", "proved")
    assert found["J1"]["grade"] == "likely"
