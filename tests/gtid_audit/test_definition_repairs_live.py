"""S2 repaired on real servers: what is safe by default, what looks like it and stays a plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compose.native.server import Server
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, running
from gtid_audit.cli import run
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.audited_cluster import AuditedCluster, read_and_audit
from gtid_audit.tasks.planning import make_plan
from repair import Plan
from repair.adapters.journal import Journal
from repair.applying.procedures_applied import AppliedProcedure, ProcedureState
from repair.model.actions import ChangeDefinition
from repair.plan_parts import STAYS
from repair.render import render_files
from tests.gtid_audit.test_schema_drift_live import executed, not_logged
from tests.repair.applying import Applying, Killed
from tests.repair.live import rows, targets_of, wait_until
from topology.adapters.collect import CollectLimits
from topology.definitions.definition_scope import DefinitionScope
from topology.policy import Policy

pytestmark = pytest.mark.mysql
BOTH = pytest.mark.parametrize("version", ["9.7", pytest.param("5.6", marks=pytest.mark.slow)])
ONLY_97 = pytest.mark.parametrize("version", ["9.7"])
CHOICE = {"S2": "repair_definition"}


@pytest.fixture(scope="module", name="servers")
def shared_servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Topology]]:
    """Topologies by version, a → b, started when a test asks for them."""
    held: list[Any] = []
    found: dict[str, Topology] = {}

    class Started(dict[str, Topology]):
        def __missing__(self, version: str) -> Topology:
            name = "installation97" if version == "9.7" else "installation56"
            manager = running(
                request.getfixturevalue(name), TopologyPlan(("a", "b"), (Link("a", "b"),))
            )
            held.append(manager)
            self[version] = manager.__enter__()
            return self[version]

    found = Started()
    yield found
    for manager in held:
        manager.__exit__(None, None, None)


@pytest.fixture
def top(servers: dict[str, Topology], version: str) -> Iterator[Topology]:
    """A source `a` and its replica `b`, with an empty schema `app`."""
    made = servers[version]
    made["a"].execute("DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
    settle(made)
    yield made
    not_logged(made["b"], "DROP DATABASE IF EXISTS app", "CREATE DATABASE app")
    settle(made)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def settle(top: Topology) -> None:
    top.settle()


def audited(top: Topology, name: str = "app") -> AuditedCluster:
    schema, _, table = name.partition(".")
    cluster = ClusterToRead("c", tuple(targets_of(top).values()), CollectLimits(), Policy())
    scope = DefinitionScope(schema, table)
    return read_and_audit(cluster, content=False, scope=scope, say=lambda _: None)


def planned(top: Topology, *, choices: dict[str, str] | None = None, name: str = "app") -> Plan:
    read = audited(top, name)
    ids = [each.id for each in read.audit.findings if each.code == "S2"]
    assert ids, "the fault is found"
    made = make_plan(read, choices=choices or {}, finding_ids=ids, say=lambda _: None)
    return made.plan


def objects_left(top: Topology) -> list[str]:
    found = (each for each in audited(top).audit.findings if each.code == "S2")
    return [fact.fact for each in found for fact in each.evidence if " app." in fact.fact]


def scripts(plan: Plan) -> list[tuple[str, str]]:
    """Return the scripts of a plan in order, with their servers."""
    files = render_files(plan)
    found = []
    for step in plan.steps:
        found += [(each.server, files[step.check_name(each)]) for each in step.checks]
        found.append((step.server, files[step.file_name]))
    return found


def run_all(top: Topology, plan: Plan) -> None:
    for server, text in scripts(plan):
        done = top[server].client(text)
        assert done.returncode == 0, done.stderr
        assert " is done" in done.stdout or "go on with" in done.stdout


def run_cut(top: Topology, plan: Plan) -> None:
    """Run the scripts in clients that are killed after each statement, and then twice in whole."""
    for server, text in scripts(plan):
        lines = text.splitlines(keepends=True)
        for count, line in enumerate(lines, start=1):
            if line.startswith(("LOCK TABLES", "EXECUTE todo;", "UNLOCK", "SET @done")):
                done = top[server].client("".join(lines[:count]))
                assert done.returncode == 0, done.stderr
    for _ in range(2):
        run_all(top, plan)


def create_of(server: Server, table: str) -> str:
    [(_, text)] = server.query(f"SHOW CREATE TABLE {table}")
    return str(text)


def reasons(plan: Plan) -> str:
    """Return why a plan leaves what it leaves."""
    stays = [each for each in plan.warnings if each.startswith(STAYS)]
    return "; ".join([*stays, *(each.why for each in plan.not_planned)])


# -- safe by default -------------------------------------------------------------------------------

# By table: its definition, what the replica loses, and a row that later uses it.
SAFE = {
    "one_index": (
        "(id INT PRIMARY KEY, v INT, KEY kv (v))",
        "DROP KEY kv",
        "(1, 2)",
    ),
    "columns": (
        "(id INT PRIMARY KEY, z VARCHAR(9) DEFAULT 'it''s', a INT NOT NULL DEFAULT 5, n TEXT)",
        "DROP COLUMN z, DROP COLUMN a, DROP COLUMN n",
        "(1, 'x', 7, 'long')",
    ),
    "column_and_index": (
        "(id INT PRIMARY KEY, v INT DEFAULT NULL COMMENT 'a DEFAULT ''b''', KEY kv (v))",
        "DROP KEY kv, DROP COLUMN v",
        "(1, 3)",
    ),
    "defaults": (
        "(id INT PRIMARY KEY, v INT DEFAULT 4 COMMENT 'one')",
        "MODIFY v INT DEFAULT 3",
        "(1, DEFAULT)",
    ),
    "collation": (
        "(id INT PRIMARY KEY, v INT) DEFAULT CHARSET=latin1",
        "DEFAULT CHARSET=utf8",
        "(1, 2)",
    ),
}


def lose_what_is_safe(top: Topology) -> None:
    for name, (definition, lost, _) in SAFE.items():
        top["a"].execute(f"CREATE TABLE app.{name} {definition}")
        if name.startswith("column"):
            top["a"].execute(f"INSERT INTO app.{name} (id) VALUES (11), (12)")
        settle(top)
        not_logged(top["b"], f"ALTER TABLE app.{name} {lost}")


def is_repaired(top: Topology) -> None:
    """Check that both servers have the same, and that rows that use it arrive."""
    assert objects_left(top) == []
    for name, (_, _, row) in SAFE.items():
        assert create_of(top["a"], f"app.{name}") == create_of(top["b"], f"app.{name}")
        top["a"].execute(f"INSERT INTO app.{name} VALUES {row}")
    settle(top)
    for name in SAFE:
        assert rows(top["a"], f"app.{name}") == rows(top["b"], f"app.{name}")


@BOTH
def test_what_is_safe_is_planned_and_may_be_cut_anywhere(top: Topology) -> None:
    lose_what_is_safe(top)
    before = executed(top["b"])
    plan = planned(top)
    assert len(plan.steps) == len(SAFE) + 1, "one with a column and an index"
    assert (reasons(plan), plan.not_planned, plan.afterwards) == ("", (), ())
    assert all("ALGORITHM=" in each.statement for each in effects(plan))
    run_cut(top, plan)
    assert executed(top["b"]) == before, "nothing was logged"
    is_repaired(top)


def effects(plan: Plan) -> list[ChangeDefinition]:
    found = [each.effect for each in plan.steps]
    assert all(isinstance(each, ChangeDefinition) for each in found)
    return [each for each in found if isinstance(each, ChangeDefinition)]


@pytest.mark.slow
@BOTH
def test_a_view_is_created_if_no_table_stays_different(top: Topology) -> None:
    top["a"].execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT)")
    done = top["a"].client(
        "SET NAMES utf8mb4; CREATE VIEW app.w AS SELECT id, 'a; so' AS x FROM app.t;"
        " CREATE VIEW app.x AS SELECT id FROM app.w;"
    )
    assert done.returncode == 0, done.stderr
    settle(top)
    not_logged(top["b"], "DROP VIEW app.x", "DROP VIEW app.w")
    run_cut(top, planned(top))
    assert objects_left(top) == []
    top["a"].execute("""CREATE VIEW app.y AS SELECT 'it''s' AS z""")
    settle(top)
    not_logged(top["b"], "DROP VIEW app.w", "DROP VIEW app.y")
    plan = planned(top)
    assert "view app.y (view fewer): its definition contains a backslash" in reasons(plan)
    assert "a table, view or function that it may use stays different" in reasons(plan)
    assert plan.steps == ()


# -- what looks like it and is not -----------------------------------------------------------------

# By table: its definition on the source, the replica's change, and a part of the reason.
STAYING = {
    "no_constant": (
        "(id INT PRIMARY KEY, d DATETIME DEFAULT CURRENT_TIMESTAMP)",
        "ALTER TABLE app.{} DROP COLUMN d",
        "existing rows would get no constant",
    ),
    "no_default": (
        "(id INT PRIMARY KEY, d INT NOT NULL)",
        "ALTER TABLE app.{} DROP COLUMN d",
        "existing rows would get no constant",
    ),
    "in_the_middle": (
        "(id INT PRIMARY KEY, d INT, e INT)",
        "ALTER TABLE app.{} DROP COLUMN d",
        "is not the last column",
    ),
    "column_more": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} ADD COLUMN e INT",
        "drop it by hand if nothing does",
    ),
    "moved": (
        "(id INT PRIMARY KEY, d INT, e INT)",
        "ALTER TABLE app.{} MODIFY e INT AFTER id",
        "values went to other columns",
    ),
    "narrower": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} MODIFY d BIGINT",
        "may change values",
    ),
    "wider": (
        "(id INT PRIMARY KEY, d BIGINT)",
        "ALTER TABLE app.{} MODIFY d INT",
        "may have been cut before: compare the rows; --strategy S2=repair_definition does it",
    ),
    "not_null": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} MODIFY d INT NOT NULL DEFAULT 0",
        "more differs than its default",
    ),
    "renamed": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} CHANGE d f INT",
        "may be another column",
    ),
    "index_more": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} ADD KEY own (d)",
        "it may be intended",
    ),
    "index_other": (
        "(id INT PRIMARY KEY, d INT, e INT, KEY k (d))",
        "ALTER TABLE app.{} DROP KEY k, ADD KEY k (d, e)",
        "it may be intended",
    ),
    "full_text": (
        "(id INT PRIMARY KEY, d TEXT, FULLTEXT KEY k (d))",
        "ALTER TABLE app.{} DROP KEY k",
        "FULLTEXT",
    ),
    "no_primary": (
        "(id INT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} DROP PRIMARY KEY",
        "a primary key",
    ),
    "counter": (
        "(id INT AUTO_INCREMENT PRIMARY KEY, d INT)",
        "ALTER TABLE app.{} MODIFY id INT NOT NULL",
        "more differs than its default",
    ),
    "texts": (
        "(id INT PRIMARY KEY, d VARCHAR(9) CHARACTER SET utf8)",
        "ALTER TABLE app.{} MODIFY d VARCHAR(9) CHARACTER SET latin1",
        "may change values",
    ),
    "parts": (
        "(id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
        "ALTER TABLE app.{} REMOVE PARTITIONING",
        "it may be intended",
    ),
    "engine": (
        "(id INT PRIMARY KEY, d INT, KEY k (d))",
        "ALTER TABLE app.{} ENGINE=MyISAM, DROP KEY k",
        "its engine is not InnoDB",
    ),
    "table_fewer": (
        "(id INT PRIMARY KEY)",
        "DROP TABLE app.{}",
        "copy it with its rows from the source",
    ),
    "table_renamed": (
        "(id INT PRIMARY KEY, only_here INT)",
        "RENAME TABLE app.{0} TO app.{0}_2",
        "rename it by hand",
    ),
    "with_backslash": (
        "(id INT PRIMARY KEY, d VARCHAR(9) DEFAULT 'a\\\\b')",
        "ALTER TABLE app.{} DROP COLUMN d",
        "a backslash",
    ),
    "no_key": (
        "(id INT, d INT)",
        "ALTER TABLE app.{} DROP COLUMN d",
        "no primary key",
    ),
}


@BOTH
def test_what_may_lose_or_change_rows_stays_with_its_reason(top: Topology) -> None:
    top["a"].execute(*(f"CREATE TABLE app.{name} {each[0]}" for name, each in STAYING.items()))
    top["a"].execute(
        "CREATE TRIGGER app.fires BEFORE INSERT ON app.moved FOR EACH ROW SET NEW.d = 1",
        "CREATE PROCEDURE app.doing () SELECT 1",
        "CREATE EVENT app.nightly ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CREATE TABLE app.child (id INT PRIMARY KEY, CONSTRAINT fk FOREIGN KEY (id)"
        " REFERENCES app.moved (id))",
    )
    settle(top)
    not_logged(top["b"], *(each[1].format(name) for name, each in STAYING.items()))
    not_logged(
        top["b"],
        *("DROP TRIGGER app.fires", "DROP PROCEDURE app.doing", "DROP EVENT app.nightly"),
        "ALTER TABLE app.child DROP FOREIGN KEY fk",
    )
    plan = planned(top)
    assert plan.steps == ()
    why = reasons(plan)
    for name, (_, _, reason) in STAYING.items():
        [own] = [each for each in why.split("; table ") if each.startswith((f"app.{name} ",))] or [
            why.partition(f"table app.{name} ")[2].partition("; table ")[0]
        ]
        assert reason in own, (name, own)
    for name in ("trigger app.fires", "procedure app.doing", "event app.nightly"):
        assert name in why
    assert "the server checks all rows" in why


@BOTH
def test_values_that_the_replica_dropped_are_not_hidden(top: Topology) -> None:
    """The rows of the source have a value in the column, or get one after the plan was made."""
    a, b = top["a"], top["b"]
    a.execute(
        "CREATE TABLE app.t (id INT PRIMARY KEY, v INT)", "INSERT INTO app.t VALUES (1, NULL)"
    )
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP COLUMN v")
    plan = planned(top)
    a.execute("INSERT INTO app.t VALUES (2, 7)")
    settle(top)
    [check, (_, change)] = scripts(plan)
    assert a.client(check[1]).returncode == 0
    done = b.client(change)
    assert "committed after its rows were read" in done.stderr
    assert b.client(change, "--force").stdout.count("NOT done") == 1
    assert "`v`" not in create_of(b, "app.t")
    later = planned(top)
    assert (later.steps, "have values in `v`" in reasons(later)) == ((), True)
    chosen = planned(top, choices=CHOICE)
    assert any("compare the values of `v`" in each for each in chosen.warnings)
    run_cut(top, chosen)
    assert objects_left(top) == []
    assert rows(b, "app.t") == [(1, None), (2, None)], "the value is lost: the warning said it"


@pytest.mark.slow
@BOTH
def test_ddl_on_its_way_is_no_drift(top: Topology) -> None:
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT)")
    settle(top)
    b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    a.execute("ALTER TABLE app.t ADD KEY kv (v)")
    assert objects_left(top) == []
    b.execute(b.dialect.start_replica)
    settle(top)


@pytest.mark.slow
@BOTH
def test_selected_changes_are_made_and_can_be_taken_back(top: Topology) -> None:
    names = ("wider", "renamed", "index_more", "index_other")
    top["a"].execute(*(f"CREATE TABLE app.{name} {STAYING[name][0]}" for name in names))
    settle(top)
    not_logged(top["b"], *(STAYING[name][1].format(name) for name in names))
    before = {name: create_of(top["b"], f"app.{name}") for name in names}
    plan = planned(top, choices=CHOICE)
    assert [each.effect.server for each in plan.steps] == ["b"] * len(names)
    run_cut(top, plan)
    assert objects_left(top) == []
    for each in effects(plan):
        not_logged(top["b"], each.undo)
    assert {name: create_of(top["b"], f"app.{name}") for name in names} == before


@pytest.mark.slow
@ONLY_97
def test_a_definition_that_changed_since_is_left_alone(top: Topology) -> None:
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, w INT, KEY kv (v))")
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv")
    plan = planned(top)
    [(_, check), (_, change)] = scripts(plan)
    not_logged(b, "ALTER TABLE app.t ADD KEY kv (w)")
    assert "changed since the plan was made" in b.client(change).stderr
    not_logged(b, "ALTER TABLE app.t DROP KEY kv")
    not_logged(a, "ALTER TABLE app.t DROP KEY kv")
    assert "changed since the plan was made" in a.client(check).stderr
    b.execute("SET GLOBAL super_read_only = ON")
    assert "super_read_only is ON" in b.client(change).stderr
    not_logged(a, "ALTER TABLE app.t ADD KEY kv (v)")
    assert "super_read_only is ON on b" in reasons(planned(top))
    b.execute("SET GLOBAL super_read_only = OFF")


@ONLY_97
@pytest.mark.slow
def test_a_lock_that_a_session_keeps_ends_the_script(top: Topology) -> None:
    """Also if the client goes on after the error: the table is not changed without its lock."""
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, w INT, KEY kv (v))")
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv, DROP COLUMN w")
    plan = planned(top)
    before = create_of(b, "app.t")
    with b.connect() as held, held.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM app.t")
        for number in (1, 3):
            text = scripts(plan)[number][1]
            assert "1205" in b.client(text).stderr
            assert "NOT done" in b.client(text, "--force").stdout
        assert create_of(b, "app.t") == before
    run_all(top, plan)
    assert objects_left(top) == []


@ONLY_97
@pytest.mark.slow
def test_rows_that_violate_a_unique_index_end_the_script(top: Topology) -> None:
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, UNIQUE KEY kv (v))")
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv", "INSERT INTO app.t VALUES (8, 1), (9, 1)")
    before = create_of(b, "app.t")
    assert "hold equal values for a moment" in reasons(planned(top))
    done = b.client(scripts(planned(top, choices=CHOICE))[1][1])
    assert "1062" in done.stderr
    assert create_of(b, "app.t") == before
    not_logged(b, "DELETE FROM app.t")


@ONLY_97
@pytest.mark.slow
def test_an_applying_process_may_be_killed_anywhere(top: Topology, tmp_path: Path) -> None:
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, w INT, KEY kv (v))")
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv, DROP COLUMN w")
    plan = planned(top)
    wanted = create_of(a, "app.t")
    for number in range(0, 400, 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        applying = Applying.of(top, plan, folder)
        applying.kill_after = number
        try:
            end = applying.run()
        except Killed:
            end = replace(applying, kill_after=None).run()
            assert end.state is ProcedureState.DONE, end.message
            assert create_of(b, "app.t") == wanted
            not_logged(b, "ALTER TABLE app.t DROP KEY kv, DROP COLUMN w")
        else:
            break
    assert number > 60, "it was killed in the middle"
    assert end.state is ProcedureState.DONE


@pytest.mark.slow
@ONLY_97
def test_an_account_with_the_listed_privileges_is_enough(top: Topology) -> None:
    """The replica is read-only: that needs one more, as the page says."""
    a, b = top["a"], top["b"]
    a.execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, w INT, KEY kv (v))")
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv, DROP COLUMN w")
    plan = planned(top)
    not_logged(
        b,
        "DROP USER IF EXISTS fixer",
        "CREATE USER fixer",
        "GRANT SESSION_VARIABLES_ADMIN ON *.* TO fixer",
        "GRANT SELECT ON performance_schema.* TO fixer",
        "GRANT ALTER, CREATE, INDEX, INSERT, LOCK TABLES, SELECT ON app.* TO fixer",
    )
    listed = {each for step in plan.steps for each in step.privileges}
    assert any("SESSION_VARIABLES_ADMIN" in each for each in listed)
    assert {f"{each} on the table" for each in ("ALTER", "CREATE", "INDEX", "INSERT")} <= listed
    change = [text for server, text in scripts(plan) if server == "b"]
    assert "1290" in b.client(change[0], "--user=fixer").stderr
    not_logged(b, "GRANT CONNECTION_ADMIN ON *.* TO fixer")
    for text in change:
        done = b.client(text, "--user=fixer")
        assert done.returncode == 0, done.stderr
    not_logged(b, "DROP USER fixer")
    assert objects_left(top) == []


# -- the commands ----------------------------------------------------------------------------------


def fleet(top: Topology, folder: Path, *permitted: str) -> str:
    path = folder / "fleet.yaml"
    servers = "".join(
        f"\n      - {{name: {name}, host: {each.host}, port: {each.port}}}"
        for name, each in top.servers.items()
    )
    path.write_text(
        f"defaults: {{user: root}}\npolicy: {{reconcile: [{', '.join(permitted)}]}}\n"
        f"clusters:\n  - name: orders\n    servers:{servers}\n"
    )
    return str(path)


def reconciled(capsys: pytest.CaptureFixture[str], *words: str, status: int) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["reconcile", *words, "--json"]) == status
    [found] = json.loads(capsys.readouterr().out)["clusters"]
    assert isinstance(found, dict)
    return found


def ended(state: Path, procedure: str) -> AppliedProcedure:
    journal = Journal.at(state / "gtid-audit/journal.sqlite")
    over = (ProcedureState.DONE, ProcedureState.FAILED, ProcedureState.STOPPED)
    wait_until(lambda: journal.find(procedure).state in over)
    return journal.find(procedure)


@ONLY_97
def test_reconcile_repairs_one_table_and_then_the_schema(
    top: Topology, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lose_what_is_safe(top)
    file = fleet(top, state, "repair_definition")
    words = ("table", "app.one_index", "--fleet", file, "--yes")
    found = reconciled(capsys, *words, status=0)
    assert (found["left"], found["applied"]["strategies"]) == ([], ["repair_definition"])
    done = ended(state, found["applied"]["procedure"])
    assert done.state is ProcedureState.DONE, done.message
    assert reconciled(capsys, *words, status=0)["findings"] == []
    assert "table app.one_index" not in objects_left(top)
    assert "table app.columns" in objects_left(top)
    found = reconciled(capsys, "database", "app", "--fleet", file, "--yes", status=0)
    done = ended(state, found["applied"]["procedure"])
    assert done.state is ProcedureState.DONE, done.message
    assert "the audit afterwards: OK" in done.message or done.message == ""
    is_repaired(top)


@pytest.mark.slow
@ONLY_97
def test_what_is_not_safe_stays_a_plan_and_the_rest_is_applied(
    top: Topology, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = top["a"], top["b"]
    a.execute(
        "CREATE TABLE app.t (id INT PRIMARY KEY, v INT, KEY kv (v))",
        "CREATE TABLE app.gone (id INT PRIMARY KEY)",
    )
    settle(top)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv", "DROP TABLE app.gone")
    file = fleet(top, state)
    found = reconciled(capsys, "database", "app", "--fleet", file, "--yes", status=1)
    assert (found["applied"], len(found["left"])) == (None, 1)
    assert found["why_kept"] == "policy.reconcile does not list repair_definition"
    file = fleet(top, state, "repair_definition")
    found = reconciled(capsys, "database", "app", "--fleet", file, "--yes", status=1)
    assert ended(state, found["applied"]["procedure"]).state is ProcedureState.DONE
    assert found["left"] == found["findings"]
    assert "stays as it is: table app.gone (table fewer)" in found["why_kept"]
    assert objects_left(top) == ["table app.gone"]
    found = reconciled(capsys, "table", "app.gone", "--fleet", file, "--yes", status=1)
    assert (found["applied"], found["kept"]) == (None, None)
    found = reconciled(capsys, "table", "app.t", "--fleet", file, "--yes", status=0)
    assert found["findings"] == []
    found = reconciled(capsys, "table", "app.nowhere", "--fleet", file, "--yes", status=3)
    assert "no server shows a table or view of this name" in found["unread"][0]


@pytest.mark.slow
@BOTH
def test_two_servers_without_a_fleet_file_get_a_plan(
    top: Topology, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top["a"].execute("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, KEY kv (v))")
    settle(top)
    not_logged(top["b"], "ALTER TABLE app.t DROP KEY kv")
    dsns = (top["a"].dsn, top["b"].dsn)
    found = reconciled(capsys, "table", "app.t", *dsns, "--yes", status=1)
    assert (found["applied"], found["kept"]["strategies"]) == (None, ["repair_definition"])
    assert run(["repair", "apply", found["kept"]["directory"], "--yes"]) == 0
    assert "the audit afterwards: OK" in capsys.readouterr().out
    assert objects_left(top) == []
    command = json.loads(Path(found["kept"]["directory"], "plan.json").read_text())["command"]
    assert "--table=app.t" in command


@pytest.mark.slow
def test_each_of_a_dual_primary_pair_may_be_right(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v INT, KEY kv (v))")
    settle(pair97)
    not_logged(b, "ALTER TABLE app.t DROP KEY kv")
    plan = planned(pair97)
    assert "a and b are sources of each other" in reasons(plan)
    assert plan.steps == ()
    run_cut(pair97, planned(pair97, choices=CHOICE))
    assert objects_left(pair97) == []


@pytest.mark.slow
def test_a_column_of_a_server_between_is_selected_from_the_top_down(
    chain97: Topology,
) -> None:
    first, middle = chain97["first"], chain97["middle"]
    first.execute(
        "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v INT, KEY kv (v))"
    )
    chain97.settle()
    for each in ("middle", "last"):
        not_logged(chain97[each], "ALTER TABLE app.t DROP KEY kv, DROP COLUMN v")
    assert "servers below middle do not get the column" in reasons(planned(chain97))
    run_cut(chain97, planned(chain97, choices=CHOICE))
    assert create_of(first, "app.t") == create_of(middle, "app.t")
    run_cut(chain97, planned(chain97))
    assert objects_left(chain97) == []
    first.execute("INSERT INTO app.t VALUES (1, 2)")
    chain97.settle()
    assert rows(chain97["last"], "app.t") == [(1, 2)]
