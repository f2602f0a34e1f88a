"""Whether logged rows may be read by what a table is now."""

from dataclasses import replace

import pytest

from binlog.rows.images import ENUM
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import TableDefinition
from repair.adapters.tables_now import LoggedDefinitions, TooMuchLog, lookup_misfit, misfit_now

CREATE = (
    "CREATE TABLE `t` (`id` int NOT NULL, `State` enum('open','shut'), PRIMARY KEY (`id`))"
    " DEFAULT CHARSET=utf8mb4"
)
TABLE = RowTable(
    "d",
    "t",
    (RowColumn(LONG, 0, "id"), RowColumn(ENUM, 0, "state", members=("open", "shut"))),
    (0,),
    Origin.DEFINITION,
)


def now(create: str = CREATE) -> TableDefinition:
    return definition_from_create(create, schema="d")


def test_what_was_added_behind_changes_no_place_and_no_number() -> None:
    assert misfit_now(TABLE, now()) is None
    assert misfit_now(TABLE, now(CREATE.replace("'shut')", "'shut','torn')"))) is None
    assert misfit_now(TABLE, now(CREATE.replace(", PRIMARY", ", `more` int, PRIMARY"))) is None


@pytest.mark.parametrize(
    ("create", "why"),
    [
        (CREATE.replace("'open','shut'", "'shut','open'"), "the members of State differ"),
        (CREATE.replace("'open','shut'", "'open'"), "the members of State differ"),
        (CREATE.replace("`State`", "`status`"), "its columns or their order differ"),
        (
            CREATE.replace("(`id` int", "(`first` int, `id` int"),
            "its columns or their order differ",
        ),
        ("CREATE TABLE `t` (`id` int NOT NULL)", "its columns or their order differ"),
    ],
)
def test_other_columns_or_members_do_not_fit(create: str, why: str) -> None:
    found = misfit_now(TABLE, now(create))
    assert found is not None
    assert found.startswith("d.t: ")
    assert why in found


@pytest.mark.parametrize(
    ("keys", "is_unique"),
    [
        ("PRIMARY KEY (`id`)", True),
        ("UNIQUE KEY `u` (`id`)", True),
        ("UNIQUE KEY `u` (`id`,`v`)", False),
        ("UNIQUE KEY `u` (`v`)", False),
        ("KEY `k` (`id`)", False),
    ],
)
def test_a_row_is_looked_up_only_where_its_key_is_unique(keys: str, *, is_unique: bool) -> None:
    """A replica that lost its primary key may have the row twice, and one of them would stay."""
    columns = (RowColumn(LONG, 0, "id"), RowColumn(LONG, 0, "v"))
    table = replace(TABLE, columns=columns)
    here = now(f"CREATE TABLE `t` (`id` int NOT NULL, `v` int, {keys})")
    why = lookup_misfit(table, here)
    assert (why is None) is is_unique
    assert why is None or "it has no unique key on id here" in why
    assert lookup_misfit(replace(table, key=None), here) is None, "it is not looked up by a key"
    assert lookup_misfit(table, None) == "d.t: its definition was not read"


def test_nothing_fits_a_table_that_was_not_read() -> None:
    assert misfit_now(TABLE, None) == "d.t: its definition was not read"
    unnamed = replace(TABLE.columns[1], members=None)
    assert misfit_now(replace(TABLE, columns=(TABLE.columns[0], unnamed)), now()) is None


def test_a_table_that_changed_behind_has_no_definition_from_there_on() -> None:
    noted: list[str] = []
    places = {10: "binlog.000001:50", 60: None}

    def changed_behind(schema: str, table: str, file: str, position: int) -> str | None:
        if table == "long":
            raise TooMuchLog("9 bytes of log are behind")
        return places[position] if table == "t" else None

    logged = LoggedDefinitions(lambda _schema, _table: now(), changed_behind, noted.append)  # type: ignore[arg-type]
    assert logged.at("binlog.000001", 60)("d", "t") == now()
    assert logged.at("binlog.000001", 10)("d", "t") is None
    assert logged.at("binlog.000001", 60)("d", "t") is None, "its earlier rows are of no use either"
    assert logged.at("binlog.000001", 10)("d", "u") == now()
    assert logged.at("binlog.000001", 10)("d", "long") is None
    assert noted == [
        (
            "d.t: its columns or partitions were changed at binlog.000001:50, after the transaction at"
            " binlog.000001:10"
        ),
        "d.long: it is not known whether its columns or partitions were changed: 9 bytes of log are behind",
    ]
    assert set(logged.changed) == {("d", "t"), ("d", "long")}
