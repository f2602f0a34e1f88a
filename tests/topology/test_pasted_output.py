"""What is found in pasted text: every form of the mysql client, and text that was damaged."""

import pytest

from tests.topology.pasted_texts import A, B, boxed, status, variables, vertical
from topology.adapters.offline.pasted_output import PastedOutput, parse_output

TWO_UUIDS = f"{A}:1-5,\n{B}:1-7:9"
COLUMNS = ("@@GLOBAL.gtid_executed", "@@server_uuid")


def only(text: str) -> tuple[tuple[str, ...], tuple[dict[str, str | None], ...]]:
    """Return the columns and rows of the one result in a text."""
    found = parse_output(text)
    assert found.cut == []
    [result] = found.results
    return result.table.columns, tuple(dict(row) for row in result.table.rows)


# -- forms ----------------------------------------------------------------------------------------


def test_a_vertical_row() -> None:
    columns, [row] = only(vertical(status()))
    assert columns == tuple(status())
    assert row["Source_Host"] == "db1"
    assert row["Last_SQL_Error"] == ""
    assert row["SQL_Remaining_Delay"] is None, "NULL is no text"


def test_values_of_several_lines_in_every_form() -> None:
    values = (TWO_UUIDS, A)
    expected = (COLUMNS, (dict(zip(COLUMNS, values, strict=True)),))
    escaped, header = TWO_UUIDS.replace("\n", "\\n"), "\t".join(COLUMNS)
    for text in (
        vertical(dict(zip(COLUMNS, values, strict=True))),
        boxed(COLUMNS, values),
        f"{header}\n{escaped}\t{A}\n",
        f"{header}\n{TWO_UUIDS}\t{A}\n",  # --raw
    ):
        assert only(text) == expected


def test_several_rows_and_several_results() -> None:
    first = vertical(status(Channel_Name="x"), status(Channel_Name="y"))
    found = parse_output(first + vertical(status(Channel_Name="z")))
    assert [len(result.table.rows) for result in found.results] == [2, 1]
    assert [result.table.line for result in found.results] == [1, 2 * (len(status()) + 1) + 1]


def test_results_by_tabs_follow_each_other_without_a_line_between() -> None:
    found = parse_output(
        f"@@version\n9.7.4\n@@server_uuid\n{A}\nVariable_name\tValue\nport\t3306\n"
    )
    rows = [dict(result.table.rows[0]) for result in found.results]
    expected = [
        {"@@version": "9.7.4"},
        {"@@server_uuid": A},
        {"Variable_name": "port", "Value": "3306"},
    ]
    assert rows == expected


def test_an_error_text_may_have_several_lines_and_colons() -> None:
    text = "Could not execute Write_rows\nKey: 'x', Error_code: 1062;\nthe end"
    _, [row] = only(vertical(status(Last_SQL_Error=text)))
    assert row["Last_SQL_Error"] == text
    assert row["Replicate_Ignore_Server_Ids"] == ""


# -- what is around it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    ["mysql> ", "mysql [(none)]> ", "db1 mysql> ", "MySQL> ", " MySQL  db1:3306 ssl  SQL > "],
)
def test_a_statement_is_known_by_its_prompt(prompt: str) -> None:
    text = f"{prompt}SHOW REPLICA STATUS\\G\nEmpty set (0.00 sec)\n\n{prompt}exit\nBye\n"
    [result] = parse_output(text).results
    assert (result.statement, result.table.rows) == ("SHOW REPLICA STATUS", ())


def test_a_statement_of_several_lines() -> None:
    text = "mysql> SELECT\n    -> @@GLOBAL.gtid_purged\n    -> ;\n" + boxed(("x",), ("y",))
    [result] = parse_output(text).results
    assert result.statement == "SELECT @@GLOBAL.gtid_purged"


def test_a_statement_is_known_by_mysql_with_v() -> None:
    dashes = "-" * 14
    text = f"{dashes}\nSHOW GLOBAL VARIABLES\n{dashes}\n\n{variables({'port': '1'})}1 row in set\n"
    [result] = parse_output(text).results
    assert result.statement == "SHOW GLOBAL VARIABLES"


def test_a_marked_statement_without_rows_has_none() -> None:
    marks = vertical({"statement": "channels"}) + vertical({"statement": "workers"})
    found = parse_output(marks)
    assert [(each.statement, each.table.rows) for each in found.results] == [("channels", ())]


def test_the_last_marked_statement_may_have_been_cut_off() -> None:
    assert parse_output(vertical({"statement": "channels"})).results == []


def test_a_table_with_a_column_of_that_name_is_no_marker() -> None:
    found = parse_output(boxed(("statement",), ("a",), ("b",)))
    assert [len(each.table.rows) for each in found.results] == [2]


def test_an_error_is_of_the_statement_before_it() -> None:
    text = vertical({"statement": "workers"}) + (
        "ERROR 1142 (42000) at line 12: SELECT command denied to user 'x'@'y' for table 'threads'\n"
    )
    found = parse_output(text)
    assert found.results == []
    [refused] = found.refused
    assert (refused.statement, refused.errno, refused.line) == ("workers", 1142, 3)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_of_every_system(end: str) -> None:
    text = vertical({COLUMNS[0]: TWO_UUIDS, COLUMNS[1]: A}) + boxed(COLUMNS, (TWO_UUIDS, A))
    found = parse_output(text.replace("\n", end))
    assert [dict(each.table.rows[0]) for each in found.results] == [
        {COLUMNS[0]: TWO_UUIDS, COLUMNS[1]: A}
    ] * 2


def test_an_editor_removed_the_spaces_at_both_ends_of_lines() -> None:
    whole = vertical(status()) + boxed(("File", "Position"), ("binlog.000001", "4"))
    stripped = "".join(f"{line.strip()}\n" for line in whole.splitlines())
    found = parse_output(stripped)
    assert [each.table.columns for each in found.results] == [tuple(status()), ("File", "Position")]
    assert dict(found.results[0].table.rows[0])["Until_Condition"] == "None"


def test_a_program_doubled_the_line_ends() -> None:
    """A set goes on behind the empty line: it is not taken for a shorter one."""
    text = vertical({COLUMNS[0]: TWO_UUIDS, COLUMNS[1]: A}).replace("\n", "\n\n")
    _, [row] = only(text)
    assert row == {COLUMNS[0]: TWO_UUIDS, COLUMNS[1]: A}


def test_text_that_is_no_output_is_skipped() -> None:
    found = parse_output("Hi,\nplease see below: | a | b |\n+1 from me\nstatus\tgood\n\nRegards\n")
    assert found == PastedOutput()
    assert found.is_empty


# -- what is cut ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [1, 2, 3, 4, 5])
def test_a_box_that_ends_early_is_no_shorter_result(lines: int) -> None:
    text = boxed(("File", "Position"), ("binlog.000001", "4"), ("binlog.000002", "5"))
    found = parse_output("\n".join(text.splitlines()[:lines]))
    assert found.results == []
    assert [table.line for table in found.cut] == [1]


def test_a_box_that_was_cut_at_its_right_side() -> None:
    text = boxed(COLUMNS, (f"{A}:1-5", A))
    cut = "".join(f"{line[:60]}\n" for line in text.splitlines())
    assert parse_output(cut).is_empty


def test_a_box_whose_row_is_broken_by_other_text() -> None:
    text = boxed(COLUMNS, (TWO_UUIDS, A)).splitlines()
    text.insert(4, "mysql> SELECT 1;")
    found = parse_output("\n".join(text))
    assert found.results == []
    assert found.cut[0].cut == "the row of line 4 is not complete"


def test_rows_with_different_columns_are_cut() -> None:
    rows = vertical(status(), status()).splitlines()
    del rows[-10:]
    [table] = parse_output("\n".join(rows)).cut
    assert table.cut == "its rows do not have the same columns"


def test_a_row_with_too_few_tabs_is_cut() -> None:
    [table] = parse_output("Variable_name\tValue\nport\n").cut
    assert table.cut == "a row does not have all columns"


# -- other parts ----------------------------------------------------------------------------------

APPLIER = (
    "Could not execute Write_rows event on table t.t; Duplicate entry '1', Error_code: 1062; x"
)


@pytest.mark.parametrize(
    ("line", "applier", "channel", "errno", "text"),
    [
        (
            (
                "2026-11-27T12:00:00.123456Z 12 [ERROR] [MY-010584] [Repl] Replica SQL for channel"
                f" 'west': {APPLIER}, Error_code: MY-001062"
            ),
            True,
            "west",
            1062,
            APPLIER,
        ),
        (
            (
                "2026-11-27T12:00:00.123456Z 5 [ERROR] [MY-013114] [Repl] Replica I/O for channel '':"
                " Got fatal error 1236 from source: 'x', Error_code: MY-013114"
            ),
            False,
            "",
            13114,
            "Got fatal error 1236 from source: 'x'",
        ),
        (  # 5.7
            (
                "2026-11-27T12:00:00.123456Z 5 [ERROR] Slave SQL for channel '': Worker 1 failed"
                " executing transaction 'x', Error_code: 1062"
            ),
            True,
            "",
            1062,
            "Worker 1 failed executing transaction 'x'",
        ),
        (  # 5.6
            (
                "2026-11-27 12:00:00 4711 [ERROR] Slave I/O: Got fatal error 1236 from master when"
                " reading data from binary log: 'x', Error_code: 1236"
            ),
            False,
            "",
            1236,
            "Got fatal error 1236 from master when reading data from binary log: 'x'",
        ),
    ],
)
def test_lines_of_an_error_log(
    line: str, applier: bool, channel: str, errno: int, text: str
) -> None:
    [logged] = parse_output(f"{line}\n").logged
    found = (logged.is_applier, logged.channel, logged.errno, logged.text)
    assert found == (applier, channel, errno, text)


def test_other_lines_of_an_error_log_are_skipped() -> None:
    text = (
        "2026-11-27T12:00:00.1Z 0 [System] [MY-010931] [Server] ready for connections.\n"
        "2026-11-27T12:00:00.1Z 9 [Warning] [MY-010584] [Repl] Replica SQL for channel '': x,"
        " Error_code: MY-001287\n"
    )
    assert parse_output(text).logged == []


@pytest.mark.parametrize(
    "start",
    [
        "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '",
        "SET @@GLOBAL.GTID_PURGED='",
        "/* SET @@GLOBAL.GTID_PURGED='",
    ],
)
def test_the_header_of_a_dump(start: str) -> None:
    found = parse_output(f"-- Server version\t9.7.4-2\n--\n{start}{TWO_UUIDS}';\nSET @x=1;\n")
    assert [(each.line, each.text) for each in found.dumped] == [(3, TWO_UUIDS)]
    assert [each.text for each in found.dump_versions] == ["9.7.4-2"]


def test_times_are_those_of_date() -> None:
    found = parse_output(
        f"2026-01-02T12:00:00Z\n{vertical({'@@version': '9.7.4'})}2026-01-02T12:00:01Z\n"
    )
    assert [(each.line, each.text) for each in found.times] == [
        (1, "2026-01-02T12:00:00Z"),
        (4, "2026-01-02T12:00:01Z"),
    ]
