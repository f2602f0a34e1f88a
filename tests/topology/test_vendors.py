"""Vendors by what their servers print, and what follows for facts that their services do not give.

The texts are from public output of these servers (dumps, clients' greetings, SHOW VARIABLES). No
service was asked.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from gtid import GtidSet
from tests.consumers import a_consumer
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.adapters.reading_statements import VERSION, settings_statement
from topology.adapters.vendor_facts import as_vendor_gives, why_refused
from topology.adapters.vendor_reasons import with_vendor_reason
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Verdict
from topology.facts.runway import retention_of, undecided_retention
from topology.facts.source_answer import Outcome
from topology.facts.unseen import unevaluated_kind
from topology.handshake.offered_sets import answers_to_set
from topology.policy import Policy
from topology.readings.snapshot import ThreadState, UnreadFact, UnreadReason
from topology.readings.vendors import VENDORS, Vendor, vendor_by_settings, vendor_of
from topology.readings.version import ServerVersion

RDS = "/rdsdbbin/mysql-8.0.35.R4/"
AURORA = "/rdsdbbin/oscar-5.7.mysql_aurora.2.10.2.0.4.0/"


@pytest.mark.parametrize(
    ("version", "comment", "basedir", "expected"),
    [
        ("8.0.36", "MySQL Community Server - GPL", "/usr/", Vendor.MYSQL),
        ("9.7.4", "(Debian)", "/usr/", Vendor.MYSQL),
        (
            "8.0.36-28",
            "Percona Server (GPL), Release 28, Revision 47601f19",
            "/usr/",
            Vendor.PERCONA,
        ),
        ("8.0.35", "Source distribution", RDS, Vendor.RDS),
        ("5.6.21-log", "MySQL Community Server (GPL)", "/rdsdbbin/mysql/", Vendor.RDS),
        ("5.7.12", "MySQL Community Server (GPL)", AURORA, Vendor.AURORA),
        ("8.0.mysql_aurora.3.05.2", "Source distribution aurora", "", Vendor.AURORA),
        ("5.7.44-azure-log", "MySQL Community Server (GPL)", "/usr/", Vendor.AZURE),
        ("8.0.26-google", "(Google)", "/usr/", Vendor.CLOUD_SQL),
        ("8.0.28-u2-cloud", "MySQL Enterprise - Cloud", "/usr/", Vendor.HEATWAVE),
        ("8.0.35-27.1", "Percona XtraDB Cluster (GPL), wsrep", "/usr/", Vendor.GALERA),
        ("10.11.6-MariaDB", "managed by https://aws.amazon.com/rds/", RDS, Vendor.MARIADB),
        ("8.0.11-TiDB-v7.5.0", "TiDB Server (Apache License 2.0)", "/usr/local", Vendor.TIDB),
        ("8.0.40-Vitess", "Version: 22.0.0 (Git revision x)", "/", Vendor.VITESS),
    ],
)
def test_a_vendor_is_what_its_servers_print(
    version: str, comment: str, basedir: str, expected: Vendor
) -> None:
    settings = {"basedir": basedir}
    found = vendor_of(version_text=version, version_comment=comment, settings=settings)
    assert found is expected


@pytest.mark.parametrize(
    ("vendor", "settings", "expected"),
    [
        (Vendor.MYSQL, {"aurora_version": "3.05.2"}, Vendor.AURORA),
        (Vendor.RDS, {"aurora_version": "3.05.2"}, Vendor.AURORA),
        (Vendor.MYSQL, {"cloudsql_iam_authentication": "OFF"}, Vendor.CLOUD_SQL),
        (Vendor.MYSQL, {"basedir": RDS}, Vendor.RDS),
        (Vendor.PERCONA, {"basedir": RDS}, Vendor.PERCONA),
        (Vendor.RDS, {}, Vendor.RDS),
        (Vendor.MYSQL, {}, Vendor.MYSQL),
        (None, {"basedir": RDS}, None),
    ],
)
def test_variables_show_what_the_texts_do_not(
    vendor: Vendor | None, settings: dict[str, str], expected: Vendor | None
) -> None:
    assert vendor_by_settings(vendor, settings) is expected


def test_every_vendor_but_mysql_is_one_row_with_a_sign() -> None:
    assert sorted(row.vendor.value for row in VENDORS) == sorted(
        each.value for each in Vendor if each is not Vendor.MYSQL
    )
    assert all(row.texts or row.basedirs or row.variables for row in VENDORS)


@pytest.mark.parametrize("vendor", [Vendor.MARIADB, Vendor.TIDB, Vendor.VITESS])
def test_a_server_of_another_kind_is_u4_and_not_asked_for_gtids(vendor: Vendor) -> None:
    assert why_refused(vendor, ServerVersion(8, 0, 11))
    unread = (UnreadFact("gtid_executed", UnreadReason.UNSUPPORTED, "it has none"),)
    server = a_server("b", None, "", gtid_executed=None, vendor=vendor, unread=unread)
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1"), server))
    assert {each.code for each in audit.findings} == {"U4", "A7"}  # no channel links the two
    assert audit.verdict is Verdict.UNKNOWN


def test_a_server_that_is_too_old_has_a_reason_without_a_row() -> None:
    assert why_refused(Vendor.MYSQL, ServerVersion(5, 5)) == "has no MySQL GTIDs"
    assert why_refused(Vendor.RDS, ServerVersion(8, 0)) == ""


# -- Aurora readers -------------------------------------------------------------------------------

READER: tuple[tuple[str, str], ...] = (("aurora_version", "3.05.2"), ("innodb_read_only", "ON"))


def test_the_sets_of_an_aurora_reader_are_not_those_of_a_replica() -> None:
    read = a_server("r", B, f"{A}:1-3", vendor=Vendor.MYSQL, settings=READER)
    reader = as_vendor_gives(read)
    assert reader.vendor is Vendor.AURORA
    assert (reader.gtid_executed, reader.gtid_purged, reader.gtid_owned) == (None, None, None)
    assert "reads the storage volume of its writer" in reader.unread[0].detail
    assert unevaluated_kind(reader) == "an Aurora reader"
    writer = replace(read, settings=(READER[0], ("innodb_read_only", "OFF")))
    assert as_vendor_gives(writer).gtid_executed == read.gtid_executed
    assert as_vendor_gives(writer).unread == ()


def test_an_aurora_server_of_an_unread_kind_is_not_compared() -> None:
    """Without the setting, a writer and a reader look the same."""
    read = a_server("r", B, f"{A}:1-3", vendor=Vendor.AURORA, settings=None)
    found = as_vendor_gives(read)
    assert found.gtid_executed is None
    assert found.unread[0].detail.startswith("innodb_read_only was not read: it may be an Aurora")
    assert unevaluated_kind(found) is None, "U1, not U4: it may be a writer"


def test_an_aurora_reader_is_u4_and_no_difference() -> None:
    reader = as_vendor_gives(a_server("r", B, "", vendor=Vendor.AURORA, settings=READER))
    writer = a_server("w", A, f"{A}:1-9", vendor=Vendor.AURORA)
    audit = audit_cluster(a_cluster("aurora", reader, writer))
    [finding] = audit.findings
    assert (finding.code, finding.replica) == ("U4", "r")
    assert "Audit the writer of its Aurora cluster" in finding.explanation


# -- reasons --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor", "fact", "reason", "words"),
    [
        (Vendor.RDS, "workers", UnreadReason.UNSUPPORTED, "RDS: performance_schema is off"),
        (Vendor.AURORA, "metadata locks", UnreadReason.UNSUPPORTED, "DB parameter group"),
        (Vendor.RDS, "gtid_executed", UnreadReason.UNSUPPORTED, "(gtid-mode)"),
        (Vendor.CLOUD_SQL, "workers", UnreadReason.PRIVILEGE, "Cloud SQL: set the flag"),
        (Vendor.RDS, "workers", UnreadReason.TIMEOUT, ""),  # another cause
        (Vendor.RDS, "workers", UnreadReason.UNPARSEABLE, ""),
        (Vendor.MYSQL, "workers", UnreadReason.UNSUPPORTED, ""),
        (Vendor.PERCONA, "workers", UnreadReason.UNSUPPORTED, ""),
        (None, "workers", UnreadReason.UNSUPPORTED, ""),
        (Vendor.RDS, "channels", UnreadReason.PRIVILEGE, ""),  # it can be granted
    ],
)
def test_a_reason_follows_the_servers_own_message(
    vendor: Vendor | None, fact: str, reason: UnreadReason, words: str
) -> None:
    found = with_vendor_reason(vendor, UnreadFact(fact, reason, "not shown"))
    assert (found.fact, found.reason) == (fact, reason)
    assert found.detail.startswith("not shown")
    assert words in found.detail
    assert (found.detail == "not shown") is (not words)


def test_u1_shows_the_reason_of_the_vendor() -> None:
    unread = (UnreadFact("workers", UnreadReason.UNSUPPORTED, "no thread is shown"),)
    replica = as_vendor_gives(
        a_server("b", B, f"{A}:1", vendor=Vendor.RDS, unread=unread, channels=(a_channel("a", A),))
    )
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1"), replica))
    [finding] = [each for each in audit.findings if each.code == "U1"]
    assert finding.grade is Grade.UNKNOWN
    assert "RDS: performance_schema is off by default" in finding.evidence[0].value
    assert any("RDS: performance_schema" in each.reason for each in audit.unknown)


# -- retention ------------------------------------------------------------------------------------

WEEK = ("binlog_expire_logs_seconds", "604800")
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("vendor", "settings", "period", "words"),
    [
        # MySQL's own setting has no effect on RDS: its service deletes the logs.
        (Vendor.RDS, (WEEK,), None, "RDS deletes a binary log as soon as it needs it no longer"),
        (Vendor.RDS, (WEEK, ("binlog_retention_hours", "NULL")), None, "'binlog retention hours'"),
        (Vendor.RDS, (WEEK, ("binlog_retention_hours", "24")), DAY, ""),
        (Vendor.AURORA, (WEEK, ("binlog_retention_hours", "48")), 2 * DAY, ""),
        (Vendor.AURORA, (WEEK,), None, "Aurora deletes"),
        # On Azure 0 is not for ever.
        (Vendor.AZURE, (("binlog_expire_logs_seconds", "0"),), None, "Azure deletes"),
        (Vendor.AZURE, (WEEK,), 7 * DAY, ""),
        (Vendor.CLOUD_SQL, (WEEK,), None, "transactionLogRetentionDays"),
        (Vendor.HEATWAVE, (WEEK,), 7 * DAY, ""),
        (Vendor.PERCONA, (WEEK,), 7 * DAY, ""),
        (Vendor.MYSQL, (("binlog_expire_logs_seconds", "0"),), None, ""),  # for ever
    ],
)
def test_who_deletes_binary_logs(
    vendor: Vendor, settings: tuple[tuple[str, str], ...], period: timedelta | None, words: str
) -> None:
    server = a_server("a", A, f"{A}:1", vendor=vendor, settings=settings)
    found = retention_of(server)
    assert (found.period if found else None) == period
    assert words in undecided_retention(server)
    assert bool(undecided_retention(server)) is bool(words)


def test_until_when_a_service_keeps_what_a_stopped_replica_needs_is_not_known() -> None:
    held = {"source_uuid": A, "receiver": ThreadState.STOPPED, "applier": ThreadState.STOPPED}
    replica = a_server("b", B, f"{A}:1-3", channels=(a_channel("a", A, **held),))
    source = a_server("a", A, f"{A}:1-9", vendor=Vendor.RDS, settings=(WEEK,))
    unknown = audit_cluster(a_cluster("pair", source, replica)).unknown
    assert [(each.server, each.fact.split(" that ")[1]) for each in unknown] == [("a", "b needs")]
    assert unknown[0].reason.startswith("RDS deletes a binary log")
    own = replace(source, vendor=Vendor.MYSQL)
    assert not audit_cluster(a_cluster("pair", own, replica)).unknown


def test_a_healthy_replica_on_rds_is_ok() -> None:
    settings = (("basedir", RDS), WEEK)
    replica = a_server("b", B, f"{A}:1-3", channels=(a_channel("a", A),), settings=settings)
    source = a_server("a", A, f"{A}:1-3", settings=settings)
    audit = audit_cluster(a_cluster("pair", as_vendor_gives(source), as_vendor_gives(replica)))
    assert (audit.verdict, audit.unknown) == (Verdict.OK, ())


@pytest.mark.parametrize(("hours", "found"), [("24", True), ("999", False), ("NULL", False)])
def test_c8_on_rds_is_likely_and_about_its_own_hours(hours: str, *, found: bool) -> None:
    settings = (("binlog_retention_hours", hours), WEEK)
    replica = a_server("b", B, f"{A}:1-3", channels=(a_channel("a", A),))
    source = a_server("a", A, f"{A}:1-3", vendor=Vendor.RDS, settings=settings)
    policy = Policy(outage_seconds_max=3 * 86_400)
    audit = audit_cluster(a_cluster("pair", source, replica), policy)
    short = [each for each in audit.findings if each.code == "C8"]
    assert bool(short) is found
    if found:
        assert short[0].grade is Grade.LIKELY
        assert "replicas that it does not manage" in short[0].explanation


@pytest.mark.parametrize("hours", ["NULL", "999"])
def test_until_when_rds_serves_a_set_is_known_only_with_its_hours(hours: str) -> None:
    """A log that the service may delete at once must not count as one without a limit."""
    settings = (("binlog_retention_hours", hours), WEEK)
    source = a_server("a", A, f"{A}:1-9", vendor=Vendor.RDS, settings=settings)
    read = replace(
        a_cluster("one", source), consumers=(a_consumer("cdc", GtidSet.parse(f"{A}:1-3")),)
    )
    audit = audit_cluster(read)
    [answer] = answers_to_set(read, audit, Policy(), GtidSet.parse(f"{A}:1-3")).answers
    assert (answer.outcome, answer.deadline) == (Outcome.SERVED, None)
    assert answer.is_deadline_unread
    facts = [each.fact for each in audit.unknown if "RDS deletes" in each.reason]
    is_known = hours != "NULL"
    assert facts == ([] if is_known else ["until when a can send what its set does not have"])
    assert any("RDS deletes" in each for each in answer.doubts) is not is_known


@pytest.mark.parametrize(
    ("version", "refused"),
    [(None, False), (ServerVersion(5, 6), False), (ServerVersion(5, 5, 62), True)],
)
def test_mysql_is_read_from_5_6_on(version: ServerVersion | None, *, refused: bool) -> None:
    """Pasted output may not show the version."""
    assert bool(why_refused(Vendor.MYSQL, version)) is refused


def test_one_statement_reads_the_settings_and_what_shows_a_vendor() -> None:
    asked = settings_statement()
    for name in ("basedir", "innodb_read_only", "aurora_version", "cloudsql_iam_authentication"):
        assert f"'{name}'" in asked
    assert "@@GLOBAL.basedir" in VERSION


def test_each_sign_of_the_table_is_enough() -> None:
    for row in VENDORS:
        for word in row.texts:
            assert vendor_of(version_text="8.0.1", version_comment=f"x {word} y") is row.vendor
        for part in row.basedirs:
            settings = {"basedir": f"{part}-8.0.1/"}
            found = vendor_of(version_text="8.0.1", version_comment="x", settings=settings)
            assert found is row.vendor
        for name in row.variables:
            found = vendor_of(version_text="8.0.1", version_comment="x", settings={name: "x"})
            assert found is row.vendor
