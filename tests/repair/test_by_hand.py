"""Manual instructions that depend on the sets of the servers."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from repair.model.replication_model import Model
from repair.strategies.configuring import SETTINGS
from repair.strategies.done_by_hand import by_hand
from repair.strategies.strategy_registry import PLANNERS
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Evidence, Finding, Grade
from topology.catalogue.verdict_table import CATALOGUE
from topology.facts.donors import DOUBTFUL_DONORS
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SERVERS = model(
    server("a", "a:1-9", purged="a:1-6"),
    server("b", "a:1-3", channel("a")),
    server("c", "a:1-9", channel("a")),
    server("d", "a:1-9", channel("a")),
)


def purged(servers: Model) -> Finding:
    audit = audit_cluster(snapshot_of(servers))
    [finding] = [each for each in audit.findings if each.code == "P1"]
    return replace(finding, gtid_set=gtids("a:4-6"))


def refetched(servers: Model) -> str:
    return by_hand("donor_refetch", purged(servers), servers)


def test_a_donor_that_sends_nothing_else_comes_first() -> None:
    assert refetched(SERVERS).startswith("on b run `STOP REPLICA`, `CHANGE REPLICATION SOURCE TO")
    assert "(host of c)" in refetched(SERVERS)
    errant = SERVERS.replace(server("c", "a:1-9 c:1", channel("a")))
    assert "(host of d)" in refetched(errant)
    hole = replace(purged(SERVERS), code="H3")
    by_hand_of_hole = by_hand("donor_refetch", hole, SERVERS)
    assert by_hand_of_hole.startswith("compare the rows first: if a copy with them was loaded on b")
    assert by_hand_of_hole.endswith(refetched(SERVERS).removeprefix("on b run"))
    both = errant.replace(server("d", "a:1-9 d:1", channel("a")))
    assert refetched(both).startswith(f"c would also send {gtids('c:1')}, which a does not have")
    refusing = both.replace(server("b", "a:1-3 c:7", channel("a")))
    assert "(host of d)" in refetched(refusing)


def test_a_donor_that_refuses_the_replica_is_named_where_there_is_no_other() -> None:
    alone = model(
        SERVERS["a"], server("b", "a:1-3 c:7", channel("a")), server("c", "a:1-9", channel("a"))
    )
    refusing = f"c will refuse the connection: {gtids('c:7')} has its server_uuid, but c does not"
    assert refusing in refetched(alone)
    assert "will refuse" not in refetched(SERVERS)


def test_a_donor_whose_log_is_missing_comes_last() -> None:
    finding = purged(SERVERS)
    doubt = Evidence(DOUBTFUL_DONORS, "c", "a", NOON)
    doubted = replace(finding, evidence=(*finding.evidence, doubt))
    assert by_hand("donor_refetch", doubted, SERVERS) == refetched(SERVERS).replace(
        "of c)", "of d)"
    ).replace("what c applied. What c left", "what d applied. What d left").replace(
        "the DSN of c)", "the DSN of d)"
    )
    both = replace(doubted, evidence=(replace(doubt, value="c, d"),))
    text = by_hand("donor_refetch", both, SERVERS)
    assert text.startswith("whether c can send them is not certain: a binary log is missing there")
    assert text.endswith(refetched(SERVERS))


def test_a_donor_can_serve_all_that_the_replica_needs() -> None:
    purging = SERVERS.replace(server("c", "a:1-9 c:1", channel("a"), purged="c:1"))
    assert "(host of d)" in refetched(purging)
    alone = model(*(SERVERS[name] for name in "ab"), purging["c"])
    assert refetched(alone).startswith("no server of this snapshot")


def test_a_clone_without_the_servers_own_gtids_gets_a_new_server_uuid() -> None:
    """With its old one it uses their numbers again, and c, which has them, skips what is new."""
    finding = purged(SERVERS)
    text = by_hand("reclone", finding, SERVERS)
    assert "b keeps its server_uuid: its auto.cnf stays" in text
    assert "would use the numbers" not in text
    errant = SERVERS.replace(server("b", "a:1-3 b:1", channel("a")))
    text = by_hand("reclone", finding, errant)
    assert "b must get a new server_uuid: stop it, remove auto.cnf from its data directory" in text
    assert "its auto.cnf stays" not in text
    assert f"b would use the numbers of {gtids('b:1')} again" in text
    assert "clone" in text
    assert "also got them" not in text
    below = errant.replace(server("c", "a:1-9 b:1", channel("b")))
    assert text + ". c also got them: clone these as well" == by_hand("reclone", finding, below)
    foreign = SERVERS.replace(server("b", "a:1-3 d:1", channel("a")))
    assert "b keeps its server_uuid" in by_hand("reclone", finding, foreign)


def test_what_waits_on_the_donor_is_not_redone_there() -> None:
    """Its applier would run it as well: rows of a table without a key double."""
    finding = purged(SERVERS)
    waiting = replace(channel("b"), retrieved=gtids("b:1-2"))
    servers = SERVERS.replace(server("b", "a:1-3 b:1-2", channel("a")))
    servers = servers.replace(server("a", "a:1-9", waiting, purged="a:1-6"))
    text = by_hand("reclone", finding, servers)
    assert f"a may still get {gtids('b:1-2')} by replication, with its content" in text
    assert "--redo" not in text
    # Its channel sends the rest, unless that was passed by a file position.
    sends = servers.replace(server("a", "a:1-9", channel("b"), purged="a:1-6"))
    assert by_hand("reclone", finding, sends) == text
    behind = channel("b", auto=False, bypassed="b:1-2")
    passed = servers.replace(server("a", "a:1-9", behind, purged="a:1-6"))
    assert "--redo" in by_hand("reclone", finding, passed)
    none = servers.replace(server("a", "a:1-9", purged="a:1-6"))
    assert "--redo" in by_hand("reclone", finding, none)


def test_nothing_is_redone_where_the_source_was_reset() -> None:
    finding = purged(SERVERS)
    errant = SERVERS.replace(server("b", "a:1-3 b:1", channel("a")))
    text = by_hand("reclone", finding, errant)
    assert "--redo" in text
    assert text.startswith("do NOT restore b from a as it is")
    text = by_hand("reclone", replace(finding, code="E6"), errant)
    assert "--redo" not in text
    assert "Do not redo them there" in text
    # A point-in-time recovery leaves the rows out: the finding (E6) knows which of the two it is.
    assert "probably on a. " in text
    assert "because the history of a was reset" not in text
    assert text.endswith("If they are not, only b has them, and this would delete them")
    assert "Nothing is lost" in by_hand("reclone", finding, SERVERS)


def test_a_session_that_owns_the_gtid_must_not_commit() -> None:
    finding = replace(purged(SERVERS), code="A5")
    assert "data_locks" in by_hand("kill_blocker", finding, SERVERS)
    [first, *_] = finding.evidence
    owned = replace(first, fact="state", value="Waiting for GTID to be committed")
    text = by_hand("kill_blocker", replace(finding, evidence=(owned,)), SERVERS)
    assert "on b run `SELECT @@GLOBAL.gtid_owned`" in text
    assert "ROLLBACK" in text
    assert "It must not commit" in text
    assert "data_locks" not in text


def test_a_rebuilt_server_keeps_its_server_uuid_and_what_audits_remember() -> None:
    finding = purged(SERVERS)
    text = by_hand("reclone", replace(finding, code="E4"), SERVERS)
    assert "b keeps its server_uuid" in text
    assert f"run `gtid-audit history PLACE --forget '{finding.gtid_set}' --server a" in text
    assert "--server b` afterwards" in text
    assert "--forget" not in by_hand("reclone", finding, SERVERS)


@pytest.mark.parametrize(
    ("version", "setting"),
    [
        ((5, 6, 24), "slave_parallel_workers = 0"),
        ((5, 7, 4), "slave_parallel_workers = 0"),
        ((5, 7, 5), "slave_preserve_commit_order = ON"),
        ((9, 7, 4), "replica_preserve_commit_order = ON"),
    ],
)
def test_before_5_7_5_only_one_thread_commits_in_order(
    version: tuple[int, int, int], setting: str
) -> None:
    servers = SERVERS.replace(server("b", "a:1-3", version=ServerVersion(*version)))
    text = by_hand("configure", replace(purged(SERVERS), code="C7"), servers)
    assert f"`SET GLOBAL {setting}`" in text


def test_a_filter_of_a_binary_log_is_removed_and_its_replicas_are_no_option() -> None:
    evidence = tuple(
        Evidence(fact, "mysql", "a", NOON)
        for fact in ("binlog_do_db", "replicas", "binlog_ignore_db")
    )
    text = by_hand("configure", replace(purged(SERVERS), code="C11", evidence=evidence), SERVERS)
    assert text.startswith("remove binlog_do_db, binlog_ignore_db from the configuration file of a")


def of_vendor(vendor: Vendor) -> Model:
    return SERVERS.replace(replace(SERVERS["a"], vendor=vendor))


@pytest.mark.parametrize(
    ("vendor", "words"),
    [
        (Vendor.MYSQL, ""),
        (Vendor.RDS, ". RDS refuses SET GLOBAL"),
        (Vendor.AURORA, "DB cluster parameter group"),
        (Vendor.AZURE, "change the server parameter there"),
        (Vendor.CLOUD_SQL, "change the database flag of the instance"),
    ],
)
def test_where_a_service_changes_a_setting_is_stated(vendor: Vendor, words: str) -> None:
    finding = replace(
        purged(SERVERS), code="C5", replica="a", evidence=(Evidence("sync_binlog", "0", "a", NOON),)
    )
    plain = by_hand("configure", finding, SERVERS)
    text = by_hand("configure", finding, of_vendor(vendor))
    assert text.startswith(plain)
    assert words in text
    assert bool(text.removeprefix(plain)) is bool(words)


def test_a_service_keeps_logs_for_longer_by_its_own_setting() -> None:
    hours = (Evidence("binlog_retention_hours", "24", "a", NOON),)
    finding = replace(purged(SERVERS), code="P3", evidence=hours)
    text = by_hand("raise_retention", finding, of_vendor(Vendor.RDS))
    assert "CALL mysql.rds_set_configuration('binlog retention hours', 168)`" in text
    assert text.endswith("run `CALL mysql.rds_set_configuration('binlog retention hours', 24)`")
    short = replace(finding, code="C8", source=None, replica="a")
    text = by_hand("configure", short, of_vendor(Vendor.RDS))
    assert text.startswith("on a run `CALL mysql.rds_set_configuration('binlog retention hours', (")
    assert "SET GLOBAL" not in text


def test_0_is_not_for_ever_on_azure() -> None:
    kept = (Evidence("binlog_expire_logs_seconds", "3600", "a", NOON),)
    finding = replace(purged(SERVERS), code="P3", evidence=kept)
    assert "SET PERSIST binlog_expire_logs_seconds = 0" in by_hand(
        "raise_retention", finding, SERVERS
    )
    text = by_hand("raise_retention", finding, of_vendor(Vendor.AZURE))
    assert "Do not set it to 0" in text
    assert "SET PERSIST" not in text


def test_a_server_is_attached_only_to_one_that_was_read_and_has_all_of_it() -> None:
    unlinked = replace(purged(SERVERS), code="J1")
    assert by_hand("attach", unlinked, SERVERS).startswith("compare the data of the two servers")
    for name in "ab":
        alone = model(SERVERS[name])
        text = by_hand("attach", unlinked, alone)
        assert text == "compare the GTID sets and the data of the two servers first"
    ahead = SERVERS.replace(server("b", "a:1-3 b:1"))
    assert by_hand("attach", unlinked, ahead).startswith("do NOT attach b yet: a does not have ")


def test_a_damaged_relay_log_is_deleted_where_it_is_not_the_last_copy() -> None:
    stopped = replace(
        purged(SERVERS), code="A3", evidence=(Evidence("applier errno", "13121", "b", NOON),)
    )
    received = replace(channel("a"), retrieved=gtids("a:4-9"))
    by_position = replace(received, auto_position=False)
    for servers, words in (
        (model(server("a", "a:1-9"), server("b", "a:1-3", received)), "SOURCE_AUTO_POSITION = 1`"),
        (
            model(server("a", "a:1-9"), server("b", "a:1-3", by_position)),
            "SOURCE_LOG_FILE = '(Relay_Source_Log_File)', SOURCE_LOG_POS = (Exec_Source_Log_Pos)`",
        ),
        # What b has executed may be purged; what it has only received may not.
        (model(server("a", "a:1-9", purged="a:1-3"), server("b", "a:1-3", received)), "START REP"),
    ):
        text = by_hand("explain", stopped, servers)
        assert text.startswith(
            "no transaction caused the error, and a still has all of them: on b run"
        )
        assert words in text
        assert ("with the values of" in text) == ("LOG_FILE" in text)
    kept = model(server("a", "a:1-9", purged="a:1-5"), server("b", "a:1-3", received))
    text = by_hand("explain", stopped, kept)
    assert text.startswith("do NOT delete the relay log of b")
    assert gtids("a:4-5").shortened() in text
    assert "`" not in text
    # What b is still to apply is in its relay log alone, although the model has it executed.
    due = replace(server("b", "a:1-9", received), due=gtids("a:4-5"))
    waiting = by_hand("explain", stopped, model(kept["a"], due))
    assert waiting.startswith("do NOT delete the relay log of b")
    assert gtids("a:4-5").shortened() in waiting
    applied = by_hand("explain", stopped, model(kept["a"], server("b", "a:1-9", received)))
    assert applied.startswith("no transaction caused the error")
    # Another channel has nothing that is missing: only that of the finding counts.
    first = replace(channel("d", name="d"), retrieved=gtids("d:1"))
    two = model(SERVERS["a"], server("b", "a:1-9 d:1", first, received), server("d", "d:1"))
    assert "SOURCE_AUTO_POSITION = 1`" in by_hand("explain", stopped, two)
    gone = two.replace(server("b", "a:1-9", first, received))
    assert "SOURCE_AUTO_POSITION = 1`" in by_hand("explain", stopped, gone)
    of_d = replace(stopped, channel="d", source="d")
    emptied = gone.replace(server("d", "d:1", purged="d:1"))
    assert by_hand("explain", of_d, emptied).startswith("do NOT delete the relay log of b")
    for unread in (model(server("b", "a:1-3", received)), model(server("a", "a:1-9"))):
        text = by_hand("explain", stopped, unread)
        assert "before you delete the relay log" in text
        assert "`" not in text


def test_a_gap_is_not_closed_before_its_rows_are_compared_where_a7_refuses_the_start() -> None:
    """One answer: H2 does not recommend what A7 refuses."""
    made = replace(channel("a", runs=False), retrieved=gtids("a:4-6"))
    gap = replace(a_finding("H2", "a:4"), grade=Grade.PROVED)
    for facts, grade, words in (
        ({}, Grade.PROVED, "on b run `STOP REPLICA`"),
        ({"may_be_former": True}, Grade.PROVED, "do NOT start b yet: what waits may not match"),
        ({"by_hand": gtids("a:5")}, Grade.PROVED, "do NOT start b yet: what waits may not match"),
        ({"around_start": gtids("a:4")}, Grade.PROVED, "do NOT start b yet: what waits"),
        ({}, Grade.LIKELY, "do NOT start b yet: it is not proved that its workers left the gap."),
    ):
        servers = model(server("a", "a:1-6"), server("b", "a:1-3 a:5", replace(made, **facts)))
        text = by_hand("until_after_gaps", replace(gap, grade=grade), servers)
        assert text.startswith(words)
        assert "`START REPLICA UNTIL SQL_AFTER_MTS_GAPS`" in text
    alone = model(server("a", "a:1-6"))
    assert by_hand("until_after_gaps", gap, alone).startswith("on b run `STOP REPLICA`")
    both = replace(gap, grade=Grade.LIKELY)
    doubted = model(server("b", "a:1-3", replace(made, may_be_former=True)))
    text = by_hand("until_after_gaps", both, doubted)
    assert "(see A7) and it is not proved" in text


# Every instruction that a finding can lead to, and the test on real servers that does it literally.
EXECUTED = {
    "attach": "test_by_hand_live.py::test_an_unlinked_server_is_attached",
    "configure A4": "test_settings_live.py::test_a_source_gets_its_binary_log_back",
    "configure A9": "test_settings_live.py::test_a_server_writes_its_log_again",
    "configure C9": "test_settings_live.py::test_a_replica_becomes_read_only",
    "configure C10": "test_settings_live.py::test_a_position_after_a_crash_is_recovered",
    "configure C12": "test_settings_live.py::test_remarks_on_the_configuration_end",
    "configure C5": "test_settings_live.py::test_remarks_on_the_configuration_end",
    "configure C7": "test_settings_live.py::test_remarks_on_the_configuration_end",
    "configure C8": "test_settings_live.py::test_remarks_on_the_configuration_end",
    "configure C11": "test_settings_live.py::test_a_server_logs_all_schemas_again",
    "configure C15": "test_settings_live.py::test_an_applier_that_ignores_errors_is_made_strict",
    "configure C2": "test_by_hand_live.py::test_a_server_id_of_its_own_brings_what_was_dropped",
    "configure C4": "test_settings_live.py::test_a_waiting_skip_counter_is_taken_back",
    "configure C6": "test_settings_live.py::test_a_server_logs_again_what_it_receives",
    "configure P1": "test_settings_live.py::test_a_server_logs_again_what_it_receives",
    "configure H3": "test_settings_live.py::test_a_server_logs_again_what_it_receives",
    "configure H4": "test_settings_live.py::test_a_server_logs_again_what_it_receives",
    "donor_refetch": "test_by_hand_live.py::test_a_donor_serves_what_the_source_has_purged",
    "explain": "test_by_hand_live.py::test_workers_that_report_nothing_but_1756",
    "kill_blocker": "test_blockers_live.py::test_the_session_that_holds_a_lock_is_killed",
    "move_consumer": (
        "test_consumers_by_hand_live.py::test_a_consumer_is_moved_to_a_server_that_serves_it"
    ),
    "new_snapshot": "test_consumers_by_hand_live.py::test_a_new_backup_replaces_the_old_one",
    "new_server_uuid": "test_by_hand_live.py::test_a_copied_server_gets_a_uuid_of_its_own",
    "raise_retention": "test_settings_live.py::test_logs_stay_while_a_repair_needs_them",
    "until_after_gaps": "test_by_hand_live.py::test_gaps_of_a_parallel_applier_are_closed",
    "rebuild_position": "test_by_hand_live.py::test_a_replica_follows_the_new_history_of_its_source",
    "reclone": "test_copies_live.py::test_a_server_is_replaced_by_a_copy_of_its_source",
}


def test_what_assumes_equal_data_says_that_it_was_not_checked_and_how_to() -> None:
    command = "`gtid-audit repair check-data (DSN of a) (DSN of b) --as-they-are`"
    for name in ("check_data", "rebuild_position"):
        said = by_hand(name, a_finding("E6", "a:1-3"), SERVERS)
        assert said.startswith("THE DATA WAS NOT CHECKED: compare the rows of a and b with ")
        assert command in said


# They change no server: to wait, to look, to let the audit read more.
WITHOUT_A_CHANGE = {"wait", "read_again", "add_servers", "check_data", "grant", "configure U1"}
WITHOUT_A_CHANGE |= {"configure C13", "configure C14"}  # clocks, and other servers


def test_every_instruction_is_done_literally_by_a_test() -> None:
    named = {
        each.name if each.name != "configure" else f"configure {code}"
        for code, entry in CATALOGUE.items()
        if entry.has_rule
        for each in entry.strategies
        if each.name not in PLANNERS
    }
    # Rules add these to the strategies of their code: see topology/rules.
    named |= {f"configure {code}" for code in ("A4", "H3", "H4", "P1", "U1")}
    assert named == set(EXECUTED) | WITHOUT_A_CHANGE
    assert {f"configure {code}" for code in SETTINGS} <= named
    for place in EXECUTED.values():
        file, _, test = place.partition("::")
        assert f"def {test}(" in (Path(__file__).parent / file).read_text(), place
