"""The parts of a data check that need no server: what readings prove, tables, statements, record."""

import json
from itertools import product
from pathlib import Path
from uuid import UUID

import pytest

from gtid_audit.views.checked_data_text import checked_data_document
from repair.adapters.data_check_record import UnreadableRecord, open_record
from repair.data_check.checked_data import (
    CheckedData,
    CheckedPart,
    CheckedTableResult,
    PartState,
    UnlikeRow,
)
from repair.data_check.checked_tables import (
    CheckedTable,
    JsonForm,
    TablePair,
    ValueKind,
    common_form,
    common_key,
    definition_of,
    tables_from,
    unlike_columns,
)
from repair.data_check.part_comparison import (
    PartOutcome,
    RowDifference,
    RowDigests,
    compared,
    confirmed,
)
from repair.data_check.part_queries import (
    PartBounds,
    bound_query,
    checksum_query,
    rows_query,
    shown_key,
)
from topology.catalogue.findings import Verdict

SERVERS = (UUID(int=1), UUID(int=2))


@pytest.mark.parametrize(("before", "there", "after"), [*product((None, "x", "y", "z"), repeat=3)])
def test_only_a_row_that_did_not_change_is_different(
    before: str | None, there: str | None, after: str | None
) -> None:
    """Every case of one row: absent, or one of three versions, in each of the three readings."""
    readings: list[RowDigests] = [{("1",): each} if each else {} for each in (before, there, after)]
    found = compared(*readings)
    if there in (before, after):  # the replica had one of the versions of the source
        assert found == PartOutcome({}, 0)
    elif before != after:
        assert found == PartOutcome({}, 1)
    else:
        expected = (
            RowDifference.ONLY_RIGHT
            if before is None
            else RowDifference.ONLY_LEFT
            if there is None
            else RowDifference.OTHER_VALUES
        )
        assert found == PartOutcome({("1",): expected}, 0)


def test_a_difference_counts_if_it_is_seen_twice() -> None:
    one = PartOutcome({("1",): RowDifference.ONLY_LEFT, ("2",): RowDifference.OTHER_VALUES}, 0)
    assert confirmed(one, one) == one
    other = PartOutcome({("1",): RowDifference.ONLY_LEFT, ("3",): RowDifference.ONLY_RIGHT}, 2)
    assert confirmed(one, other) == PartOutcome({("1",): RowDifference.ONLY_LEFT}, 2 + 2)
    changed = PartOutcome({("1",): RowDifference.ONLY_LEFT, ("2",): RowDifference.ONLY_RIGHT}, 0)
    assert confirmed(one, changed) == PartOutcome({("1",): RowDifference.ONLY_LEFT}, 1)


def column(name: str, data_type: str, collation: str | None = None, **other: str) -> dict[str, str]:
    return {
        "schema_name": "d",
        "table_name": "t",
        "column_name": name,
        "data_type": data_type,
        "collation": collation or "",
        "extra": "",
        "is_nullable": "NO",
        **other,
    }


def index(name: str, column_name: str | None, sub_part: int | None = None) -> dict[str, object]:
    row = {"schema_name": "d", "table_name": "t", "index_name": name}
    return {**row, "column_name": column_name, "sub_part": sub_part}


def table(columns: list[dict[str, str]], *indexes: dict[str, object]) -> CheckedTable:
    row = {"schema_name": "d", "table_name": "t", "engine": "InnoDB", "rows_about": 7}
    return tables_from([row], columns, indexes)["d", "t"]


ID = column("id", "int")
NAME = column("name", "varchar", "utf8mb4_0900_ai_ci")


def test_a_table_is_read_by_its_primary_key_or_the_shortest_other() -> None:
    two = [index("u", "id"), index("u", "name")]
    assert [key.name for key in table([ID, NAME], *two, index("PRIMARY", "id")).keys] == [
        "PRIMARY",
        "u",
    ]
    assert [key.columns for key in table([ID, NAME], *two, index("z", "id")).keys] == [
        ("id",),
        ("id", "name"),
    ]


@pytest.mark.parametrize(
    ("columns", "of_index"),
    [
        ([column("id", "int", is_nullable="YES")], index("u", "id")),
        ([column("id", "enum", "latin1_bin")], index("PRIMARY", "id")),
        ([column("id", "double")], index("PRIMARY", "id")),
        ([column("id", "float")], index("PRIMARY", "id")),
        ([column("id", "bit")], index("PRIMARY", "id")),
        ([NAME], index("PRIMARY", "name", 3)),
        ([ID], index("u", None)),
        ([ID, column("g", "int", extra="VIRTUAL GENERATED")], index("u", "g")),
    ],
)
def test_what_no_version_orders_alike_is_no_key(
    columns: list[dict[str, str]], of_index: dict[str, object]
) -> None:
    assert table(columns, of_index).keys == ()


def test_another_definition_is_noticed() -> None:
    one, wider = table([ID]), table([ID, NAME])
    texts = {definition_of(TablePair(*each, None)) for each in ((one, one), (one, wider))}
    assert len(texts) == 2
    assert definition_of(TablePair(one, one, None)) in texts
    assert definition_of(TablePair(one, one, None, JsonForm.SIZES)) not in texts


def test_what_an_old_server_does_not_show_of_json_is_in_the_answer() -> None:
    assert common_form(JsonForm.TYPES, JsonForm.TYPES) is JsonForm.TYPES
    assert common_form(JsonForm.SIZES, JsonForm.TYPES) is JsonForm.SIZES
    assert common_form(JsonForm.TYPES, JsonForm.SIZES) is JsonForm.SIZES
    plain, document = table([ID]), table([ID, column("j", "json")])
    for one, form, is_noted in (
        (plain, JsonForm.SIZES, False),
        (document, JsonForm.TYPES, False),
        (document, JsonForm.SIZES, True),
    ):
        result = CheckedTableResult("d", "t", note=TablePair(one, one, None, form).note)
        result.add(LAST)
        found = CheckedData("a", "b", [result])
        assert found.verdict is Verdict.OK
        [shown] = checked_data_document(found)["tables"]
        assert [each[:5] for each in shown["reasons"]] == (["JSON:"] if is_noted else [])


def test_the_types_of_a_document_are_compared_where_both_servers_show_them() -> None:
    one = table([column("j", "json")])
    for form, is_shown in ((JsonForm.TYPES, True), (JsonForm.SIZES, False)):
        query = checksum_query(one, None, PartBounds(None, None), one.columns, form)
        assert ("JSON_TABLE(`j`, '$'" in query) is is_shown


def test_names_that_differ_in_case_are_two_tables() -> None:
    rows = [
        {"schema_name": "d", "table_name": name, "engine": "InnoDB", "rows_about": 0}
        for name in ("T", "t")
    ]
    mixed = [
        {**column(f"c{number}", "int"), "table_name": name}
        for number, name in enumerate(("t", "T", "t", "T"))
    ]
    found = tables_from(rows, mixed, [])
    assert {place: [each.name for each in one.columns] for place, one in found.items()} == {
        ("d", "T"): ["c1", "c3"],
        ("d", "t"): ["c0", "c2"],
    }


def test_a_virtual_column_is_not_compared() -> None:
    virtual = column("v", "int", extra="VIRTUAL GENERATED")
    stored = column("s", "int", extra="STORED GENERATED")
    assert [each.name for each in table([ID, virtual, stored]).columns] == ["id", "s"]


def test_a_key_of_text_needs_one_collation() -> None:
    other = column("name", "varchar", "latin1_bin")
    here = table([ID, NAME], index("PRIMARY", "name"), index("u", "id"))
    there = table([ID, other], index("PRIMARY", "name"), index("u", "id"))
    found = common_key(here, there)
    assert found is not None
    assert found.name == "u"
    assert common_key(here, table([ID, NAME])) is None
    big = table([column("id", "bigint"), NAME], index("u", "id"))
    assert common_key(table([ID, NAME], index("u", "id")), big) is None


def test_columns_must_be_the_same() -> None:
    assert unlike_columns(table([ID, NAME]), table([NAME, ID])) == ""
    assert unlike_columns(table([ID, NAME]), table([ID])) == (
        "only one of the servers has the column name"
    )
    latin, forms = column("name", "varchar", "latin1_bin"), column("name", "varchar", "utf8_bin")
    assert unlike_columns(table([NAME]), table([forms])) == ""
    assert unlike_columns(table([NAME]), table([latin])) == (
        "columns have other character sets: name"
    )
    assert unlike_columns(table([ID]), table([column("id", "bigint")])) == (
        "columns have other types: id (int and bigint)"
    )


@pytest.mark.parametrize(
    ("of", "kind", "text"),
    [
        (ID, ValueKind.PLAIN, "HEX(CAST(`id` AS CHAR CHARACTER SET utf8mb4))"),
        (NAME, ValueKind.TEXT, "HEX(`name`)"),
        (
            column("j", "json"),
            ValueKind.LARGE,
            (
                "SHA2(CONCAT(CAST(`j` AS CHAR CHARACTER SET utf8mb4), '|', JSON_TYPE(`j`), '|',"
                " JSON_STORAGE_SIZE(JSON_INSERT(`j`, '$', 1))), 256)"
            ),
        ),
        (column("b", "blob"), ValueKind.RAW, "SHA2(`b`, 256)"),
        (column("b", "varbinary"), ValueKind.RAW, "HEX(`b`)"),
        (
            column("f", "float"),
            ValueKind.APPROXIMATE,
            "SUBSTRING(HEX(POINT(`f`, 0)), 19, 16)",
        ),
    ],
)
def test_how_a_value_becomes_text(of: dict[str, str], kind: ValueKind, text: str) -> None:
    one = table([of])
    assert one.columns[0].kind is kind
    query = checksum_query(one, None, PartBounds(None, None), one.columns, JsonForm.SIZES)
    assert f"SHA2(CONCAT_WS(',', IFNULL({text}, '-')), 256) AS row_digest FROM `d`.`t`)" in query


def test_a_range_is_compared_column_by_column() -> None:
    one = table([ID, NAME, column("n", "decimal")], *(index("u", c) for c in ("id", "name", "n")))
    key = one.keys[0]
    bounds = PartBounds(("1", "27", "-0.50"), ("2", "C3A9", "7"))
    query = rows_query(one, key, bounds, one.columns, JsonForm.TYPES)
    assert (
        " WHERE `id` >= 1 AND (`id` > 1 OR `id` = 1 AND (`name` > _utf8mb4 x'27' OR"
        " `name` = _utf8mb4 x'27' AND"
        " (`n` > -0.50))) AND `id` <= 2 AND (`id` < 2 OR `id` = 2 AND (`name` < _utf8mb4 x'c3a9'"
        " OR `name` = _utf8mb4 x'c3a9' AND (`n` <= 7))) ORDER BY `id`, `name`, `n`" in query
    )
    assert "FORCE INDEX (`u`)" in query
    assert bound_query(one, key, None, 100).endswith(
        " FROM `d`.`t` FORCE INDEX (`u`) ORDER BY `id`, `name`, `n` LIMIT 1 OFFSET 99"
    )


@pytest.mark.parametrize("value", ["1 OR 1", "", "-", "1e9", "٣", "0x41"])
def test_a_bound_that_is_no_number_is_refused(value: str) -> None:
    one = table([ID], index("PRIMARY", "id"))
    with pytest.raises(ValueError, match="not a number"):
        bound_query(one, one.keys[0], (value,), 10)


def test_keys_are_shown_as_a_reader_knows_them() -> None:
    one = table([ID, NAME, column("b", "binary")], *(index("u", c) for c in ("id", "name", "b")))
    assert shown_key(one, one.keys[0], ("1", "C3A9", "00FF")) == ("1", "é", "0x00FF")
    gbk = table([column("name", "varchar", "gbk_bin")], index("u", "name"))
    assert shown_key(gbk, gbk.keys[0], ("A140",)) == ("0xA140",)
    assert "_gbk x'a140'" in bound_query(gbk, gbk.keys[0], ("A140",), 10)


PART = CheckedPart("d", "t", "PRIMARY", ("5",), "x", 5, PartState.SAME)
LAST = CheckedPart("d", "t", "PRIMARY", None, "x", 2, PartState.SAME)
BAD = CheckedPart(
    "d",
    "t",
    "PRIMARY",
    None,
    "x",
    2,
    PartState.DIFFERENT,
    1,
    (UnlikeRow(("6",), RowDifference.ONLY_LEFT),),
)
OPEN = CheckedPart("d", "t", "PRIMARY", None, "x", 2, PartState.UNSETTLED, why="behind")


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((PART, LAST), Verdict.OK),
        ((PART,), Verdict.UNKNOWN),
        ((), Verdict.UNKNOWN),
        ((PART, BAD), Verdict.CRITICAL),
        ((PART, OPEN), Verdict.UNKNOWN),
    ],
)
def test_a_table_is_the_same_if_every_part_is(
    parts: tuple[CheckedPart, ...], verdict: Verdict
) -> None:
    result = CheckedTableResult("d", "t")
    for part in parts:
        result.add(part)
    assert result.verdict is verdict
    assert CheckedData("a", "b", [result]).verdict is verdict


def test_nothing_compared_is_not_ok() -> None:
    same = CheckedTableResult("d", "t")
    same.add(LAST)
    assert CheckedData("a", "b", []).verdict is Verdict.UNKNOWN
    assert CheckedData("a", "b", [same], "lost").verdict is Verdict.UNKNOWN
    assert CheckedData("a", "b", [same, CheckedTableResult("d", "u", unread="x")]).verdict is (
        Verdict.UNKNOWN
    )
    missing = CheckedTableResult("d", "u", missing_on="b")
    assert CheckedData("a", "b", [same, missing]).verdict is Verdict.CRITICAL


@pytest.mark.long
def test_a_record_goes_on_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with open_record(path, SERVERS) as record:
        assert record.done == []
        for part in (PART, BAD, OPEN):
            record.add(part)
    assert path.stat().st_mode & 0o777 == 0o600
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with open_record(path, SERVERS) as record:
            lines = max(0, whole[:cut].count(b"\n") - 1)
            assert record.done == [PART, BAD, OPEN][:lines]
            record.add(LAST)
        with open_record(path, SERVERS) as record:
            assert record.done == [*[PART, BAD, OPEN][:lines], LAST]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello\n", ":1: not a record of a data check"),
        ("[]\n", ":1: it is the record of something else"),
        (
            json.dumps({"data_check": 1, "servers": [str(SERVERS[1])] * 2}) + "\n",
            ":1: it is the record of a data check of other servers",
        ),
        (
            json.dumps({"data_check": 1, "servers": [*map(str, SERVERS)]}) + "\n{}\n",
            ":2: not a part of a data check",
        ),
    ],
)
def test_a_file_that_is_no_record_of_these_servers_is_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "record"
    path.write_text(text)
    with pytest.raises(UnreadableRecord, match="record") as problem, open_record(path, SERVERS):
        pass
    assert str(problem.value).startswith(f"{path}{why}")
    assert path.read_text() == text
