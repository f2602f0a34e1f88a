"""Every version's texts are known, whatever their blanks and case; what is unknown is said to be."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet
from tests.hypothesis_profiles import laws
from tests.topology.thread_texts import THREAD_TEXTS
from topology.catalogue.error_texts import NUMBERS, TEXTS
from topology.catalogue.explanations import Unexplained, explain
from topology.catalogue.receiver_errors import NOT_QUEUED
from topology.catalogue.strategy_table import STRATEGIES
from topology.catalogue.verdict_table import CATALOGUE, FAMILIES, UnknownCode, entry_of

LAWS = laws()
SENT = "aaaaaaaa-0000-0000-0000-000000000000:1-80"
MISSING = "aaaaaaaa-0000-0000-0000-000000000000:81-90"
OLD, NEW = ("master", "slave"), ("source", "replica")


def wrapped(text: str, source: str) -> str:
    return f"Got fatal error 1236 from {source} when reading data from binary log: '{text}'"


# (what the server writes, its catalogue code), in the words of each age
REFUSALS = [
    (
        (
            "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has"
            " purged binary logs containing GTIDs that the slave requires."
        ),
        "P1",
    ),
    (
        (
            "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has"
            " purged binary logs containing GTIDs that the slave requires. Replicate the missing"
            " transactions from elsewhere, or provision a new slave from backup. Consider increasing the"
            f" master's binary log expiration period. The GTID set sent by the slave is '{SENT}', and the"
            f" missing transactions are '{MISSING}'"
        ),
        "P1",
    ),
    ("Cannot replicate because the master purged required binary logs.", "P1"),
    (
        (
            "Cannot replicate because the source purged required binary logs. Replicate the missing"
            " transactions from elsewhere, or provision a new replica from backup. Consider increasing"
            " the source's binary log expiration period. The GTID set sent by the replica is"
            f" '{SENT}', and the missing transactions are '{MISSING}'."
        ),
        "P1",
    ),
    (
        (
            "Cannot replicate because the source purged required binary logs. Replicate the missing"
            " transactions from elsewhere, or provision a new slave from backup. Consider increasing the"
            " master's binary log expiration period."
        ),
        "P1",
    ),
    (
        (
            "The GTID sets and the missing purged transactions are too long to print in this message."
            " For more information, please see the master's error log or the manual for GTID_SUBTRACT."
        ),
        "P1",
    ),
    (
        (
            "Slave has more GTIDs than the master has, using the master's SERVER_UUID. This may indicate"
            " that the end of the binary log was truncated or that the last binary log file was lost,"
            " e.g., after a power or disk failure when sync_binlog != 1."
        ),
        "E3",
    ),
    ("Replica has more GTIDs than the source has, using the source's SERVER_UUID.", "E3"),
    ("Could not find first log file name in binary log index file", "A4"),
    ("Client requested master to start replication from position > file size", "A4"),
    ("Client requested source to start replication from impossible position", "A4"),
    ("bogus data in log event", "A4"),
    ("log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master", "A4"),
    ("Binary log is not open", "A4"),
    ("A slave with the same server_uuid/server_id as this slave has connected to the master", "C1"),
    ("A replica with the same server_uuid/server_id as this replica has connected", "C1"),
    (
        (
            "Found old binary log without GTIDs while looking for the oldest binary log that contains any"
            " GTID that is not in the given gtid set"
        ),
        "A4",
    ),
]


@pytest.mark.parametrize("source", ["master", "source"])
@pytest.mark.parametrize(("text", "code"), REFUSALS)
def test_a_refusal_is_known_bare_and_in_its_wrapper(text: str, code: str, source: str) -> None:
    for whole in (text, wrapped(text, source), text.upper(), text.replace(" ", "\n  ")):
        found = explain(whole)
        assert found.code == code
        assert found.title != "the source refused to send"
        assert found.meaning
        assert found.cause
        assert found.advice


def test_a_wrapper_around_what_nobody_knows_is_still_a_refusal() -> None:
    found = explain(wrapped("something of the year 2040", "source"))
    assert (found.title, found.code) == ("the source refused to send", "A4")


@pytest.mark.parametrize("words", [OLD, NEW])
def test_the_sets_in_a_text_are_read_out(words: tuple[str, str]) -> None:
    source, replica = words
    text = (
        f"Cannot replicate because the {source} purged required binary logs. The GTID set sent by the"
        f" {replica} is '{SENT}', and the missing transactions are '{MISSING}'"
    )
    sets = (
        ("sent by the replica", GtidSet.parse(SENT)),
        ("missing transactions", GtidSet.parse(MISSING)),
    )
    assert explain(text).gtid_sets == sets


def test_a_set_that_was_cut_off_is_left_out_not_guessed() -> None:
    text = "the source purged required binary logs. The GTID set sent by the replica is "
    assert explain(f"{text}'aaaaaaaa-0000-").gtid_sets == ()
    cut = explain(f"{text}'aaaaaaaa-', and the missing transactions are '{MISSING}'")
    assert cut.gtid_sets == (("missing transactions", GtidSet.parse(MISSING)),)


# As appliers of 5.6.24 and 9.7.4 report them, cut before what follows.
APPLIER_TEXTS = (
    (
        "Relay log read failure: Could not parse relay log event entry. The possible reasons are: the"
        " master's binary log is corrupted"
    ),
    "Could not open log file",
    "Last_SQL_Error: Could not find target log file mentioned in relay log info in the index file",
    "Worker 1 failed executing transaction 'x'; Error 'XAER_NOTA: Unknown XID' on query.",
    "Worker 1 failed executing transaction 'x'; Query execution was interrupted",
    (
        "Could not execute Update_rows event on table t.t; Lock wait timeout exceeded; try restarting"
        " transaction, Error_code: 1205"
    ),
    "Could not execute Write_rows event on table t.t; The table 't' is full, Error_code: 1114",
    "INSERT command denied to user 'applier'@'%' for table 't'",
    (
        "Error 'Unable to create or change a table without a primary key, when the system variable"
        " 'sql_require_primary_key' is set."
    ),
    "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage",
    (
        "Column 2 (counting the first column as number 1) of table 'td.t' cannot be converted from type"
        " 'varchar(160(bytes))' to type 'varchar(12(bytes) utf8mb4)'"
    ),
    "Error 'Data too long for column 'note' at row 1' on query.",
    "Could not execute Update_rows event on table c.t; Check constraint 'no_source' is violated.",
    "Error 'Can't create database 'd'; database exists' on query. Default database: 'd'.",
    "Error 'Table 't' already exists' on query.",
    "Error executing row event: 'Table 'td.t' doesn't exist'",
    "Error 'Unknown collation: 'utf8mb4_0900_ai_ci'' on query.",
)


@pytest.mark.parametrize(
    ("inner", "title"),
    [
        ("Error 'XAER_NOTA: Unknown XID' on query.", "the applier finds no such prepared XA"),
        ("Lock wait timeout exceeded; try restarting transaction", "the applier waited too long"),
        ("Duplicate entry '1' for key 't.PRIMARY'", "duplicate key on the replica"),
        ("something of the year 2040", "the workers of a parallel applier have stopped"),
    ],
)
def test_a_coordinator_quotes_the_error_of_its_worker(inner: str, title: str) -> None:
    text = (
        "Coordinator stopped because there were error(s) in the worker(s). The most recent failure"
        f" being: Worker 1 failed executing transaction 'x' at source log b.2, end_log_pos 9; {inner}"
    )
    assert explain(text).title.startswith(title)


# As they are shown by SHOW REPLICA STATUS, by error logs and by clients, 5.6 to 9.7.
MORE_TEXTS: tuple[tuple[str, str | None], ...] = (
    (
        (
            "Coordinator stopped because there were error(s) in the worker(s). The most recent failure"
            " being: Worker 1 failed executing transaction 'ANONYMOUS' at source log b.2, end_log_pos 9."
        ),
        "A3",
    ),
    ("Replica worker has stopped after at least one previous worker encountered an error", "A3"),
    ("cannot be executed when the replica was stopped with an error or killed in MTA mode", "A6"),
    ("Error 'Column count doesn't match value count at row 1' on query.", "A3"),
    ("Error 'Field 'c' doesn't have a default value' on query.", "A3"),
    ("Table definition on master and slave does not match: Column 1 type mismatch", "A3"),
    ("Error 'PROCEDURE p already exists' on query.", "A3"),
    ("Error 'Trigger does not exist' on query.", "A3"),
    ("Error 'Duplicate partition name p1' on query.", "A3"),
    ("Error 'Partition management on a not partitioned table is not possible' on query.", "A3"),
    ("Worker 2 failed executing transaction 'x'; Error 'Row size too large.' on query.", "A3"),
    ("Error 'Specified key was too long; max key length is 767 bytes' on query.", "A3"),
    ("Error 'Operation CREATE USER failed for 'x'@'%'' on query.", "A3"),
    ("This function has none of DETERMINISTIC (use log_bin_trust_function_creators)", "A3"),
    ("Worker 1 failed executing transaction 'x'; Error 'XAER_DUPID: The XID already exists'", "A3"),
    ("worker thread retried transaction 10 time(s) in vain, giving up.", "A3"),
    ("because its size 20000000 exceeds 16777216 of slave_pending_jobs_size_max.", "A3"),
    ("Out of memory; restart server and try again (needed 65536 bytes)", "A3"),
    ("Table './d/t' is marked as crashed and should be repaired", "A3"),
    ("Got error 168 - 'Unknown (generic) error from engine' from storage engine", "A3"),
    ("The incident LOST_EVENTS occured on the master. Message: error writing the log", "A3"),
    ("Cannot recover after SLAVE errored out in parallel execution mode.", "A6"),
    ("Slave failed to initialize relay log info structure from the repository", "A6"),
    ("Replica failed to initialize applier metadata structure from the repository", "A6"),
    (
        "The table in transaction x does not comply with the requirements by an external plugin.",
        "A3",
    ),
    ("The query does not comply with variable require_row_format restrictions.", "A3"),
    ("Access denied for user 'applier'@'%' to database 'd'", "A3"),
    ("Got a packet bigger than 'replica_max_allowed_packet' bytes", "A4"),
    ("Got a packet bigger than 'slave_max_allowed_packet' bytes", "A4"),
    ("Fatal error: failed to set network namespace 'east'", "A4"),
    ("The server is currently in offline mode", "A4"),
    (
        (
            "Error connecting to source 'r@h:1'. This was attempt 3/86400, with a delay of 1"
            " seconds between attempts. Message: Connections using insecure transport are"
            " prohibited while --require_secure_transport=ON."
        ),
        "A4",
    ),
    ("Replication event checksum verification failed while reading from network.", "A4"),
    ("Master command COM_REGISTER_SLAVE failed: Access denied for user 'r'@'h'", "A4"),
    (
        (
            "The slave I/O thread stops because a fatal error is encountered when it try to"
            " SET @master_binlog_checksum on master."
        ),
        "A4",
    ),
    ("Slave can not handle replication events with the checksum that master is configured", "A4"),
    ("Error reading a replication log encryption header: Missing key in keyring.", "A4"),
    ("Unexpected source's heartbeat data: heartbeat is not compatible with local info", "A4"),
    ("Error on observer while running replication hook 'before_commit'.", "A4"),
    ("This member has more executed transactions than those present in the group.", "J3"),
    (
        (
            "The replication receiver thread cannot start because the source has GTID_MODE = OFF and"
            " this server has GTID_MODE = ON."
        ),
        "C4",
    ),
    ("cannot start in AUTO_POSITION mode: this server uses @@GLOBAL.GTID_MODE = OFF.", "C4"),
    ("Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file b.1", "A4"),
    ("GTID_MODE can only be changed one step at a time: OFF <-> OFF_PERMISSIVE <->", "C4"),
    ("Statement violates GTID consistency: CREATE TABLE ... SELECT.", "C4"),
    ("Parameters MASTER_LOG_FILE cannot be set when MASTER_AUTO_POSITION is active.", None),
    ("@@SESSION.GTID_NEXT cannot be changed by a client that owns a GTID.", None),
    ("@@SESSION.GTID_NEXT cannot be set to ANONYMOUS when @@GLOBAL.GTID_MODE = ON.", None),
    (
        (
            "Cannot execute statements with implicit commit inside a transaction when"
            " @@SESSION.GTID_NEXT == 'UUID:NUMBER'."
        ),
        None,
    ),
    ("sql_slave_skip_counter can not be set when the server is running with GTID_MODE = ON", None),
    ("Cannot update GTID_PURGED with the Group Replication plugin running", None),
    ("Impossible to generate GTID: the integer component reached the maximum value.", "H7"),
    ("Access denied for user 'x'@'h' (using password: YES)", None),
    ("The MySQL server is running with the --super-read-only option", None),
    ("This operation cannot be performed with running replication threads", None),
    ("Multiple channels exist on the replica. Please provide channel name", None),
    ("Slave is not configured or failed to initialize properly.", None),
    ("Binary logging not possible. Message: An error occurred during flush stage", None),
)
OTHER_TEXTS: list[tuple[str, str | None]] = [
    ("Relay log write failure: could not queue event from source", "A4"),
    ("Relay log write failure: could not queue event from master", "A4"),
    ("Query caused different errors on master and slave. Error on master: message", "A1"),
    ("Query caused different errors on source and replica.", "A1"),
    (
        (
            "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file"
            " ./binlog.000002, position 197."
        ),
        "A4",
    ),
    (
        (
            "Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON, at file"
            " ./binlog.000002, position 197."
        ),
        "A4",
    ),
    (
        (
            "Fatal error: The slave I/O thread stops because master and slave have equal MySQL server"
            " UUIDs; these UUIDs must be different for replication to work."
        ),
        "C1",
    ),
    (
        (
            "Fatal error: The replica I/O thread stops because source and replica have equal MySQL"
            " server ids; these ids must be different for replication to work"
        ),
        "C2",
    ),
    (
        (
            "The replication receiver thread cannot start in AUTO_POSITION mode: the source has"
            " GTID_MODE = ON_PERMISSIVE instead of ON."
        ),
        "C4",
    ),
    (
        "Could not execute Write_rows event on table t.t; Duplicate entry '1' for key 't.PRIMARY'",
        "A2",
    ),
    (
        "Could not execute Update_rows event on table t.t; Can't find record in 't', Error_code: 1032",
        "A2",
    ),
    ("cannot be executed when the slave was stopped with an error or killed in MTS mode", "A6"),
    ("error connecting to master 'repl@db1:3306' - retry-time: 60 retries: 1", "A4"),
    ("error reconnecting to source 'repl@db1:3306'", "A4"),
    ("Authentication plugin reported error: Authentication requires secure connection.", "A4"),
    ("Fatal error: Failed during slave workers initialization", "A3"),
    ("Fatal error: Failed during replica thread initialization", "A3"),
    (
        (
            "The slave coordinator and worker threads are stopped, possibly leaving data in"
            " inconsistent state."
        ),
        "A3",
    ),
    *((text, "A3") for text in APPLIER_TEXTS),
    *MORE_TEXTS,
    *THREAD_TEXTS,
    ("Malformed GTID set specification 'x'.", "U3"),
    ("@@GLOBAL.GTID_PURGED can only be set when @@GLOBAL.GTID_EXECUTED is empty.", None),
    (
        "@@GLOBAL.GTID_PURGED cannot be changed: the new value must be a superset of the old value",
        None,
    ),
    (
        (
            "When @@SESSION.GTID_NEXT is set to a GTID, you must explicitly set it to a different value"
            " after a COMMIT or ROLLBACK."
        ),
        None,
    ),
]


@pytest.mark.parametrize(("text", "code"), OTHER_TEXTS)
def test_other_texts_of_all_ages_are_known(text: str, code: str | None) -> None:
    found = explain(text)
    assert found.code == code
    assert found.advice
    assert bool(found.cause) == (code is not None)


def test_an_error_of_the_engine_beside_another_one_is_not_the_cause() -> None:
    text = (
        "Could not execute Update_rows event on table d.t; Got error 168 - 'Unknown (generic) error"
        " from engine' from storage engine, Error_code: 1030; Query execution was interrupted,"
        " Error_code: 1317; handler error No Error!"
    )
    assert explain(text).title == "a replication thread was interrupted"


def test_every_row_is_reached_by_some_text() -> None:
    texts = [text for text, _ in (*REFUSALS, *OTHER_TEXTS)] + [wrapped("?", "source"), "13117"]
    reached = [next(one for one in TEXTS if matches(one.pattern, text)) for text in texts]
    assert [row.title for row in TEXTS if row not in reached] == []


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


# -- numbers and codes ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_is_explained_however_it_is_written(number: int) -> None:
    found = explain(str(number))
    assert found.title == NUMBERS[number]
    for written in (f"error {number}", f"ERROR{number}", f"errno {number}", f"MY-{number:06}"):
        assert explain(written) == found


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_is_explained_from_the_catalogue(code: str) -> None:
    found = explain(f" {code.lower()} ")
    entry = CATALOGUE[code]
    assert (found.code, found.title) == (code, f"{code}: {entry.name}")
    said = entry.means if entry.has_rule else f"{entry.means} No audit reports this code."
    assert (found.meaning.startswith(said), found.cause) == (True, entry.arises)
    assert len(found.advice) == (len(entry.strategies) if entry.has_rule else 1)
    assert entry.family == FAMILIES[code[0]]


@pytest.mark.parametrize(
    "text", ["", "   ", "9999", "error 4711", "the weather is fine", "1" * 200]
)
def test_what_no_row_knows_is_said_to_be_unknown(text: str) -> None:
    with pytest.raises(Unexplained, match="no explanation for") as refused:
        explain(text)
    assert "expected a catalogue code (T1, " in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_code_that_is_none_is_named_with_the_families() -> None:
    with pytest.raises(UnknownCode, match="no catalogue entry 'Z9'; the families are T, H, E"):
        explain("Z9")


@LAWS
@given(st.text(max_size=80))
def test_any_text_is_explained_or_refused(text: str) -> None:
    try:
        found = explain(text)
    except (Unexplained, UnknownCode) as refused:
        assert str(refused)  # noqa: PT017 - most texts end here
    else:
        assert found.title
        assert found.meaning


# -- the table itself -----------------------------------------------------------------------------


def test_every_row_of_the_catalogue_is_whole() -> None:
    for code, entry in CATALOGUE.items():
        assert entry_of(code.lower()) is entry
        assert entry.name
        assert all((entry.means, entry.arises, entry.proof))
        assert all(strategy is STRATEGIES[strategy.name] for strategy in entry.strategies)
        assert "  " not in f"{entry.means} {entry.arises} {entry.proof}"


def test_every_strategy_is_somebodys_or_a_plans() -> None:
    named = {strategy.name for entry in CATALOGUE.values() for strategy in entry.strategies}
    # Other forms of inject_empty, and what the rules propose for servers outside a group.
    variants = {"gtid_purged_append", "reset_and_purge"}
    assert STRATEGIES.keys() - named == {*variants, "join_group"}


@pytest.mark.parametrize("number", [13122, 1595])
def test_what_a_receiver_cannot_write_is_known_by_number(number: int) -> None:
    assert explain(str(number)).title == NOT_QUEUED


@pytest.mark.parametrize("number", [13117, 1593])
def test_the_number_of_a_receiver_that_stops_has_several_causes(number: int) -> None:
    advice = " ".join(explain(str(number)).advice)
    assert all(name in advice for name in ("server_uuid", "server_id", "gtid_mode"))
