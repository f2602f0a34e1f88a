"""What `configure` tells the operator to change, done literally on real servers.

A setting that is put right brings nothing back: where rows are missing, the instruction names the
command that shows them.
"""

import json
import re
import shlex
import time
from dataclasses import replace

import pytest

from compose import faults_configuration, faults_filters
from compose.faults import await_status, commit
from compose.faults_content import restart_with, skipped_errors
from compose.faults_logs import log_closed, restart_with_log
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from gtid_audit.cli import run
from repair.strategies.done_by_hand import by_hand
from tests.repair.build import model
from tests.repair.live import await_clean, examine, executed, rows, statements_of, wait_until

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


def instruction(topology: Topology, code: str, strategy: str = "configure") -> str:
    """Return what the operator is to do for the one finding of a code."""
    [left] = [each for each in examine(topology).plan().not_planned if each.code == code]
    [text] = [way for way in left.by_hand if way.startswith(f"{strategy}: ")]
    return text.removeprefix(f"{strategy}: ")


def restart_without(server: Server, option: str) -> None:
    """Remove an option from the configuration of a server, and restart it."""
    kept = tuple(each for each in server.settings.extra if not each.startswith(option))
    assert kept != server.settings.extra
    server.settings = replace(server.settings, extra=kept)
    server.restart()


def codes(topology: Topology) -> set[str]:
    return {each for each in examine(topology).codes if not each.startswith("T")}


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_an_applier_that_ignores_errors_is_made_strict(
    shape: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    fault = skipped_errors(pair, mode="idempotent")
    text = instruction(pair, "C15")
    assert "equal sets hide it" in text
    pair.b.execute(*statements_of(pair, text))
    assert "C15" not in codes(pair), "it needs no restart"
    assert _left_out(text, pair, capsys) == GtidSet.parse(fault.skipped)
    # It stops at the next row that does not fit, as the text says.
    commit(pair.a, "UPDATE skipped.t SET note = 'again' WHERE id = 1")
    wait_until(lambda: bool(pair.b.replica_status()["Last_SQL_Errno"]))
    assert "A2" in codes(pair)


@pytest.mark.slow
def test_an_option_that_skips_errors_is_removed(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = skipped_errors(pair97)
    text = instruction(pair97, "C15")
    assert text.startswith("remove replica_skip_errors from the configuration file of b, then rest")
    assert not statements_of(pair97, text)
    restart_without(pair97.b, "--replica_skip_errors")
    for server in pair97.servers.values():
        await_status(server, lambda status: status["Replica_IO_Running"] == "Yes")
    assert "C15" not in codes(pair97)
    assert _left_out(text, pair97, capsys) == GtidSet.parse(fault.skipped)


def _left_out(text: str, pair: Pair, capsys: pytest.CaptureFixture[str]) -> GtidSet:
    """Run the command of the instruction, and return the GTIDs whose work b has left out."""
    [command] = re.findall("`gtid-audit ([^`]+)`", text)
    command = command.replace("SOURCE", pair.a.dsn).replace("REPLICA", pair.b.dsn)
    capsys.readouterr()
    assert run([*shlex.split(command), "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "E4"
    return GtidSet.parse(finding["gtid_set"])


def test_values_are_converted_no_more(pair97: Pair) -> None:
    pair97.b.execute("SET GLOBAL replica_type_conversions = 'ALL_LOSSY'")
    pair97.b.execute(*statements_of(pair97, instruction(pair97, "C15")))
    await_clean(pair97)


def test_a_waiting_skip_counter_is_taken_back(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE counted", "CREATE TABLE counted.t (id INT PRIMARY KEY)")
    pair97.settle()
    stop, start = b.dialect.stop_applier, b.dialect.start_applier
    b.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", stop)
    b.execute("SET GLOBAL sql_replica_skip_counter = 1", start)
    text = instruction(pair97, "C15")
    assert "applies the next transaction" in text
    b.execute(*statements_of(pair97, text))
    assert "C15" not in codes(pair97)
    wait_for(b, commit(a, "INSERT INTO counted.t VALUES (1)"))
    assert rows(b, "counted.t") == [(1,)]
    # C4 is left: b is the source of a.
    text = instruction(pair97, "C4")
    assert text.startswith("wait until Ongoing_anonymous_transaction_count is 0 on b")
    assert b.query("SHOW STATUS LIKE 'Ongoing_anonymous_transaction_count'")[0][1] == "0"
    b.execute(*statements_of(pair97, text))
    a.execute(a.dialect.stop_receiver, a.dialect.start_receiver)
    await_status(a, lambda status: status["Replica_IO_Running"] == "Yes")
    await_clean(pair97)


def test_a_server_logs_again_what_it_receives(chain97: Topology) -> None:
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    faults_filters.without_logged_updates(chain97)
    text = instruction(chain97, "C6")
    assert text.startswith("set log_replica_updates")
    unlogged = faults_filters.unlogged_updates(chain97).gtids
    assert instruction(chain97, "P1").startswith("set log_replica_updates")
    donor = instruction(chain97, "P1", "donor_refetch")
    restart_with(middle, "--log-replica-updates=ON")
    await_status(middle, lambda status: status["Replica_IO_Running"] == "Yes")
    there, back = donor.split("; wait until gtid_executed contains ")
    assert "host of first" in there
    last.execute(*statements_of(chain97, there))
    wait_for(last, unlogged)
    last.execute(*statements_of(chain97, back))
    wait_for(last, commit(first, "CREATE DATABASE logged_now"))
    await_clean(chain97)
    assert executed(first) == executed(last)


def test_a_server_logs_all_schemas_again(chain97: Topology) -> None:
    middle, last = chain97["middle"], chain97["last"]
    faults_filters.binary_log_filter(chain97)
    text = instruction(chain97, "C11")
    assert text.startswith(
        "remove binlog_ignore_db from the configuration file of middle, and rest"
    )
    assert "compare the rows" in text
    restart_without(middle, "--binlog-ignore-db")
    await_status(last, lambda status: status["Replica_IO_Running"] == "Yes")
    wait_for(last, commit(chain97["first"], "INSERT INTO filtered.t VALUES (99, 'logged')"))
    await_clean(chain97)
    assert rows(last, "filtered.t") == [(99, "logged")], "and the others stay missing, as it says"


def test_a_source_gets_its_binary_log_back(chain97: Topology) -> None:
    first, middle = chain97["first"], chain97["middle"]
    first.execute("CREATE DATABASE logged", "CREATE TABLE logged.t (id INT PRIMARY KEY)")
    chain97.settle()
    restart_with(first, "--skip-log-bin")
    first.execute("INSERT INTO logged.t VALUES (1)")
    await_status(middle, lambda status: status["Replica_IO_Running"] != "Yes")
    text = instruction(chain97, "A4")
    assert text.startswith("remove skip_log_bin (disable_log_bin) from the configuration file of f")
    assert "has no GTID and is sent to no replica: compare the rows" in text
    restart_without(first, "--skip-log-bin")
    middle.execute("START REPLICA")
    wait_for(middle, commit(first, "INSERT INTO logged.t VALUES (2)"))
    await_clean(chain97)
    assert rows(middle, "logged.t") == [(2,)]


def test_a_server_writes_its_log_again(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    fault = log_closed(pair97)
    text = instruction(pair97, "A9")
    assert text.startswith("stop the clients of a, remove the cause")
    assert "receivers that stopped meanwhile (START REPLICA IO_THREAD on its replicas)" in text
    assert "has no GTID and is sent to no replica: compare the rows" in text
    restart_with_log(a)
    b.execute("START REPLICA IO_THREAD")  # it may have connected while no log was open (1236)
    wait_for(b, commit(a, f"INSERT INTO {fault.table} VALUES (99, 'logged')"))
    await_clean(pair97)
    assert rows(b, fault.table) == [(99, "logged")], "and the others stay missing, as it says"
    assert len(rows(a, fault.table)) == fault.rows_count + 1


def test_logs_stay_while_a_repair_needs_them(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("SET GLOBAL binlog_expire_logs_seconds = 2", "CREATE DATABASE waiting")
    pair97.settle()
    b.execute("STOP REPLICA")
    a.execute("CREATE TABLE waiting.t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    [short] = [each for each in examine(pair97).audit.findings if each.code == "P3"]
    text = by_hand("raise_retention", short, model())
    assert text.startswith("on a run `SET PERSIST binlog_expire_logs_seconds = 0`: it then deletes")
    keep, undo = text.split(". When the repair is done")
    a.execute(*statements_of(pair97, keep))
    listed = a.query("SHOW BINARY LOGS")
    time.sleep(3.1)
    a.execute("FLUSH BINARY LOGS")
    assert [row[0] for row in a.query("SHOW BINARY LOGS")][:-1] == [row[0] for row in listed]
    a.execute(*statements_of(pair97, undo))
    assert a.value("@@GLOBAL.binlog_expire_logs_seconds") == 2
    a.execute("RESET PERSIST binlog_expire_logs_seconds", "FLUSH BINARY LOGS")
    assert listed[0] not in a.query("SHOW BINARY LOGS"), "without it, it would have been deleted"


def test_remarks_on_the_configuration_end(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    faults_configuration.relaxed_durability(a)
    faults_configuration.workers_out_of_order(b)
    faults_configuration.short_retention(a)
    faults_configuration.same_keys(pair97)
    remarks = {each.code: each for each in examine(pair97).audit.findings}
    assert remarks.keys() == {"C5", "C7", "C8", "C12"}
    texts = {code: by_hand("configure", each, model()) for code, each in remarks.items()}
    for code, server in (("C5", a), ("C7", b)):
        assert texts[code].startswith(f"on {server.name} run `")
        server.execute(*statements_of(pair97, texts[code]))
    for part, server in zip(texts["C12"].split("; "), (a, b), strict=True):
        assert f"on {server.name} run `" in part
        server.execute(*statements_of(pair97, part))
    assert texts["C8"].startswith("set binlog_expire_logs_seconds of a to at least")
    a.execute("SET GLOBAL binlog_expire_logs_seconds = 86400")
    await_clean(pair97)
    assert examine(pair97).audit.findings == ()


def test_a_position_after_a_crash_is_recovered(pair97: Pair) -> None:
    b = pair97.b
    change = f"{b.dialect.words.change_source} SOURCE_AUTO_POSITION"
    b.execute(b.dialect.stop_replica, f"{change} = 0", b.dialect.start_replica)
    [remark] = [each for each in examine(pair97).audit.findings if each.code == "C10"]
    assert by_hand("configure", remark, model()).startswith("switch b to auto-position (C3)")
    b.execute(b.dialect.stop_replica, f"{change} = 1", b.dialect.start_replica)
    await_clean(pair97)
    assert examine(pair97).audit.findings == ()


def test_a_replica_becomes_read_only(star97: Topology) -> None:
    star97["replica1"].execute("SET GLOBAL read_only = OFF")
    [remark] = examine(star97).audit.findings
    assert (remark.code, remark.source, remark.replica) == ("C9", "source", "replica1")
    text = by_hand("configure", remark, model())
    assert text.startswith("on replica1 run `")
    star97["replica1"].execute(*statements_of(star97, text))
    assert examine(star97).audit.findings == ()
