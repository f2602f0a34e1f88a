"""Source and replica log one transaction each their own way; its content is the same on both."""

from collections.abc import Sequence
from dataclasses import replace

from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.log_files import FileLogs
from binlog.content.compare import Agreement, Version, compare_versions
from binlog.content.content_digest import RowsPart
from binlog.ledger.ledger_columns import LedgerRequest
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan, running
from gtid import Gtid, GtidSet
from tests.binlog.material import SCRIPT_56, SCRIPT_97

# The applier cuts rows anew, at a size that only a start sets, and has a session of its own.
_PLAN = TopologyPlan(
    names=("source", "replica"),
    links=(Link(source="source", replica="replica"),),
    settings={
        "replica": Settings(
            auto_increment_increment=7,
            extra=(
                "--binlog-row-event-max-size=256",
                "--default-time-zone=+05:00",
                "--character-set-server=latin1",
                "--lc-time-names=de_DE",
            ),
        )
    },
)
_MORE = (
    "CREATE TABLE d.keyless (a INT, b VARCHAR(20))",
    f"INSERT INTO d.keyless VALUES {', '.join(f'({n % 7}, REPEAT(CHAR(65 + {n % 20}), {n % 9}))' for n in range(200))}",
    "UPDATE d.keyless SET b = CONCAT('x', LEFT(b, 5)) WHERE a > 2",
    "DELETE FROM d.keyless WHERE a = 3",
    "CREATE TABLE d.parent (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE d.child (id INT, p INT, FOREIGN KEY (p) REFERENCES d.parent (id) ON DELETE CASCADE) ENGINE=InnoDB",
    "INSERT INTO d.parent VALUES (1), (2)",
    "INSERT INTO d.child VALUES (1, 1), (2, 1), (3, 2)",
    "DELETE FROM d.parent WHERE id = 1",
    "CREATE TRIGGER d.tr AFTER INSERT ON d.parent FOR EACH ROW INSERT INTO d.keyless VALUES (NEW.id, 'tr')",
    "INSERT INTO d.parent VALUES (7), (8), (9)",
    "BEGIN",
    "INSERT INTO d.parent VALUES (50)",
    "SAVEPOINT s1",
    "INSERT INTO d.parent VALUES (51)",
    "ROLLBACK TO s1",
    "INSERT INTO d.parent VALUES (52)",
    "COMMIT",
    "SET SESSION binlog_format = 'STATEMENT'",
    "SET @u = 'user variable', @n = 42",
    "INSERT INTO d.keyless VALUES (@n, @u)",
    "INSERT INTO d.keyless VALUES (LAST_INSERT_ID(), 'l')",
    "SET NAMES latin1",
    "INSERT INTO d.keyless VALUES (1, 'latin')",
    "SET NAMES utf8mb4",
    # What a statement used stays logged for the rest of the routine, on the source alone.
    (
        "CREATE PROCEDURE d.pr() BEGIN INSERT INTO d.keyless VALUES (1, LEFT(NOW(2), 19));"
        " INSERT INTO d.keyless VALUES (2, 'p'); END"
    ),
    "SET time_zone = '+03:00', foreign_key_checks = 0, auto_increment_increment = 5",
    "CALL d.pr()",
    "SET time_zone = DEFAULT, foreign_key_checks = 1, auto_increment_increment = 1",
    "SET SESSION binlog_format = 'ROW'",
    "CREATE USER u2@'%' IDENTIFIED BY 'pw'",
    "GRANT SELECT ON d.* TO u2@'%'",
    "DROP TABLE IF EXISTS d.keyless, d.nowhere",
)
# What changes on the replica, and must not matter but for the form: new enough servers only.
_OTHER_FORMS_97 = (
    "SET GLOBAL binlog_checksum = 'NONE'",
    "SET GLOBAL binlog_transaction_compression = ON",
    "SET GLOBAL binlog_rows_query_log_events = ON",
    "SET GLOBAL binlog_row_metadata = 'FULL'",
    "SET GLOBAL binlog_format = 'MIXED'",
)
_LESS_97 = (
    "SET GLOBAL binlog_row_image = 'MINIMAL'",
    "SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'",
    "SET GLOBAL binlog_format = 'ROW'",
)
_OTHER_FORMS_56 = ("SET GLOBAL binlog_checksum = 'NONE'", "SET GLOBAL binlog_format = 'MIXED'")


def _run(topology: Topology, script: Sequence[str], settings: Sequence[str]) -> GtidSet:
    source, replica = topology["source"], topology["replica"]
    dialect = replica.dialect
    replica.execute(dialect.stop_replica, *settings, dialect.start_replica)
    before = GtidSet.parse(source.value("@@GLOBAL.gtid_executed"))
    source.execute(*script, *_MORE)
    topology.settle()
    return GtidSet.parse(source.value("@@GLOBAL.gtid_executed")) - before


def _versions(server: Server, wanted: GtidSet) -> dict[Gtid, Version]:
    names = [str(row[0]) for row in server.query("SHOW BINARY LOGS")]
    logs = FileLogs([server.datadir / name for name in names])
    found = {}
    for group in logs.events_of(wanted):
        assert group.transaction.gtid is not None
        found[group.transaction.gtid] = Version.of(group)
    return found


def _undated(version: Version) -> Version:
    transaction = replace(version.transaction, original_commit_timestamp=None)
    return replace(version, transaction=transaction)


def _form(version: Version) -> list[object]:
    return [
        part.shape if isinstance(part, RowsPart) else type(part) for part in version.content.parts
    ]


def _check(topology: Topology, wanted: GtidSet) -> int:
    """Everything is the same, digests too wherever the forms are. Returns how many are.

    Other forms of one commit are the same or not comparable, never different, drifted or skipped.
    """
    ours, theirs = (_versions(topology[name], wanted) for name in ("source", "replica"))
    assert GtidSet.of(ours) == GtidSet.of(theirs) == wanted
    equal = 0
    for gtid, version in ours.items():
        other = theirs[gtid]
        assert version.content.digest is not None
        if _form(version) == _form(other):
            assert version.content.digest == other.content.digest, (version, other)
            equal += 1
        comparison = compare_versions(version, other)
        if version.committed_at is not None:
            other_form = {Agreement.UNKNOWN} if _form(version) != _form(other) else set()
            assert comparison.agreement in {Agreement.SAME} | other_form, comparison
        undated = compare_versions(_undated(version), _undated(other))
        assert undated.agreement is not Agreement.DIFFERENT, undated
    for name in ("source", "replica"):
        _check_kernel(topology[name], ours if name == "source" else theirs)
    return equal


def _check_kernel(server: Server, versions: dict[Gtid, Version]) -> None:
    """The ledger's digests, which the kernel makes, are those of the definition."""
    seen = 0
    for name in (str(row[0]) for row in server.query("SHOW BINARY LOGS")):
        rows = ledger_of_file(server.datadir / name, LedgerRequest(digests=True)).rows
        for row in rows.select(["uuid", "tag", "gno", "digest"]).to_pylist():
            parts = [row["uuid"], *([row["tag"]] if row["tag"] else []), str(row["gno"])]
            version = versions.get(Gtid.parse(":".join(parts)))
            if version is not None:
                assert row["digest"] == version.content.digest
                seen += 1
    assert seen == len(versions)


def test_digests_of_source_and_replica_are_equal_on_9_7(installation97: Installation) -> None:
    with running(installation97, _PLAN) as topology:
        wanted = _run(topology, SCRIPT_97, ())
        # Statements that the replica logs as rows, partial JSON and minimal images it logs in full.
        assert _check(topology, wanted) >= len(list(wanted.gtids())) - 10
        again = [_renumbered(sql, 1) for sql in SCRIPT_97]
        wanted = _run(topology, ["DROP DATABASE d", *_GONE, *again], _OTHER_FORMS_97)
        assert _check(topology, wanted) >= len(list(wanted.gtids())) - 4
        again = [_renumbered(sql, 2) for sql in SCRIPT_97]
        wanted = _run(topology, ["DROP DATABASE d", *_GONE, *again], _LESS_97)
        assert _check(topology, wanted) >= len(list(wanted.gtids())) // 2


def test_digests_of_source_and_replica_are_equal_on_5_6(installation56: Installation) -> None:
    with running(installation56, _PLAN) as topology:
        wanted = _run(topology, SCRIPT_56, _OTHER_FORMS_56)
        assert _check(topology, wanted) >= len(list(wanted.gtids())) - 1


_GONE = ("DROP USER somebody@localhost", "DROP USER u2@'%'")


def _renumbered(sql: str, number: int) -> str:
    """The material's own GTIDs can be used once only."""
    return sql.replace(":5'", f":{500 + number}'").replace(":7'", f":{700 + number}'")
