"""The forms in which consumers and backups store their set, each as the program writes it."""

from pathlib import Path

import pytest

from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.offered_set import read_offered

ONE, OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fb58-82db-22f2-af44-d91bba53a673"
BOTH = f"{ONE}:1-5:7,{OTHER}:1-3"
EXPECTED = GtidSet.parse(BOTH)
OVER_LINES = f"{ONE}:1-5:7,\n{OTHER}:1-3"

FORMS = {
    "a set": OVER_LINES,
    "Debezium, an offset of Kafka Connect": (
        '["inventory",{"server":"shop"}]\t{"ts_sec":1700000000,"file":"mysql-bin.000003","pos":1571,'
        f'"gtids":"{BOTH}","row":1,"server_id":223344,"event":2}}'
    ),
    "Debezium, the value alone": f'{{"file": "b.000003", "pos": 4, "gtids": "{BOTH}"}}',
    "Flink CDC": (
        '{"splitId": "binlog-split", "startingOffset": {"offset": {"kind": "SPECIFIC",'
        f' "file": "", "pos": "0", "gtids": "{BOTH}"}}}}}}'
    ),
    "Canal": (
        '{"clientDatas":[{"clientIdentity":{"clientId":1001,"destination":"example","filter":""},'
        '"cursor":{"identity":{"slaveId":-1},"postion":{"gtid":"' + BOTH + '","included":false,'
        '"journalName":"mysql-bin.000003","position":1571,"serverId":1}}}],"destination":"example"}'
    ),
    "Maxwell, its table": (
        "*************************** 1. row ***************************\n"
        f"server_id: 1\nbinlog_file: mysql-bin.000003\ngtid_set: {BOTH}\nclient_id: maxwell\n"
    ),
    "DM, query-status": (
        '{"sources": [{"subTaskStatus": [{"sync": {"masterBinlog": "(b.000003, 1571)",'
        f' "syncerBinlogGtid": "{BOTH}"}}}}]}}]}}'
    ),
    "XtraBackup": f"mysql-bin.000003\t1571\t{OVER_LINES}\n",
    "mysqldump": (
        "-- MySQL dump 10.13\nSET @@SESSION.SQL_LOG_BIN= 0;\n"
        f"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{OVER_LINES}';\n\n-- Table `t`\n"
    ),
    "mysqldump of 5.6": f"SET @@GLOBAL.GTID_PURGED='{OVER_LINES}';\n",
    "mydumper": f'[source]\nFile = b.000003\nexecuted_gtid_set = "{BOTH}"\n[config]\nquote = x\n',
    "clone": (
        "*************************** 1. row ***************************\n"
        "             ID: 1\n          STATE: Completed\n"
        f"  GTID_EXECUTED: {ONE}:1-5:7,\n{OTHER}:1-3\n1 row in set (0.00 sec)\n"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_set_is_found_in_every_form(form: str, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.write_text(FORMS[form])
    assert read_offered(f"@{stored}") == EXPECTED
    assert read_offered(FORMS[form]) == EXPECTED


def test_tags_are_kept() -> None:
    text = f"{ONE}:1-5:nightly:1-2"
    assert read_offered(f'{{"gtids": "{text}"}}') == GtidSet.parse(text)


def test_one_set_in_two_places_is_one_set() -> None:
    assert read_offered(f'[{{"gtids": "{BOTH}"}}, {{"gtid_set": "{BOTH}"}}]') == EXPECTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{{"gtids": "{ONE}:1-5", "gtid_set": "{ONE}:1-6"}}', "different sets (gtids, gtid_set)"),
        ('{"gtids": "nonsense"}', "gtids: "),
        ('{"file": "b.000003", "pos": 4}', "operand A: "),  # a file position alone is no set
        ("mysql-bin.000003\t1571\n", "operand A: "),
        ("SET @@GLOBAL.GTID_PURGED='broken';", "GTID_PURGED: "),
        # Two connectors in one file, a deleted offset, a line that was cut.
        (
            f'["one"]\t{{"gtids": "{ONE}:1-5"}}\n["two"]\t{{"gtids": "{ONE}:1-9"}}\n',
            "different sets",
        ),
        (f'["one"]\t{{"gtids": "{ONE}:1-5"}}\n["one"]\tnull\n', "an offset was deleted"),
        (f'{{"gtids": "{ONE}:1-5"}}\n{{"gtids": "{ONE}:1-', "JSON that cannot be read"),
        (f'{{"gtids": "{ONE}:1-5", "gtids": "{ONE}:1-9"}}', "different sets (gtids)"),
        # An event has the GTID of one transaction.
        (f'{{"payload": {{"source": {{"gtid": "{ONE}:7", "pos": 4}}}}}}', "operand A: "),
        (
            f"DELIMITER ;;\nCREATE PROCEDURE p()\nSET @@GLOBAL.GTID_PURGED='{ONE}:1-99' ;;\n",
            "operand A: ",
        ),
        (f"  STATE: Failed\n  GTID_EXECUTED: {ONE}:1-5\n", "the clone is not complete"),
    ],
)
def test_what_has_no_set_or_two_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        read_offered(text)
    assert problem in str(refused.value)


def test_a_dump_with_routines_shows_its_own_statement() -> None:
    text = (
        "--\n-- GTID state at the beginning of the backup \n--\n\n"
        f"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{BOTH}';\nDELIMITER ;;\nCREATE PROCEDURE p()\n"
        f"SET @@GLOBAL.GTID_PURGED='{ONE}:1-99' ;;\nDELIMITER ;\n"
    )
    assert read_offered(text) == EXPECTED


@pytest.mark.parametrize("text", ["", "\n", f"{ONE}:1-5,\n"])
def test_a_file_that_may_be_cut_is_refused(text: str, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.write_text(text)
    with pytest.raises(UsageProblem, match=r"is empty|may be missing"):
        read_offered(f"@{stored}")
    assert read_offered("") == GtidSet(), "the set of a new server"


def test_a_refusal_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["handshake", "--offered", '{"pos": 4}', "mysql://root@127.0.0.1:1/"])
    assert status == 64
    assert "operand A" in capsys.readouterr().err
