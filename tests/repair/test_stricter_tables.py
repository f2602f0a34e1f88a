"""What a table of a replica refuses or changes that its source's table takes."""

from unittest.mock import Mock

import pymysql
import pytest

from binlog.rows.tables import Origin, RowColumn, RowTable
from binlog.schema.show_create import definition_from_create
from repair.adapters.stricter_tables import KeyColumn, TableRules, UniqueKey, stricter
from repair.adapters.tables_there import TablesThere
from tests.repair.cases import a_content

CREATE = "CREATE TABLE `t` (`id` int NOT NULL, `w` varchar(9), `v` int) DEFAULT CHARSET=utf8mb4"
NOT_NULL = CREATE.replace("`v` int", "`v` int NOT NULL")


def key(*columns: str, name: str = "k", prefix: int | None = None) -> UniqueKey:
    return UniqueKey(name, tuple(KeyColumn(each, prefix) for each in columns))


def rules(
    *keys: UniqueKey, create: str = CREATE, collation: str = "utf8mb4_bin", counting: str = ""
) -> TableRules:
    definition = definition_from_create(create, schema="d")
    return TableRules(definition, create, keys, {"w": collation}, frozenset(counting.split()))


def found(here: TableRules, there: TableRules | None, columns: int = 3) -> list[str]:
    return list(stricter(here, there, columns))


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (key("v"), (), "UNIQUE KEY (`v`)"),
        (key("v", name="PRIMARY"), (key("v", "id"),), "PRIMARY KEY (`v`)"),
        (key("w", prefix=3), (key("w"),), "UNIQUE KEY (`w`(3))"),
        (key("w", prefix=3), (key("w", prefix=4),), "UNIQUE KEY (`w`(3))"),
        (UniqueKey("k", (KeyColumn(None, None, "(`v` + 1)"),)), (key("v"),), "((`v` + 1))"),
    ],
)
def test_a_key_that_the_source_does_not_imply(
    ours: UniqueKey, theirs: tuple[UniqueKey, ...], words: str
) -> None:
    [why] = found(rules(ours), rules(*theirs))
    assert why.startswith("d.t has a ")
    assert words in why


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (key("v"), key("V", name="other")),
        (key("v", "w"), key("v")),
        (key("w"), key("w", prefix=3)),
        (key("w", prefix=4), key("w", prefix=3)),
        (
            UniqueKey("k", (KeyColumn(None, None, r"concat(`w`,_utf8mb4\'a\')"),)),
            UniqueKey("k", (KeyColumn(None, None, r"concat(`w`, _latin1\'a\')"),)),
        ),
    ],
)
def test_a_key_that_the_source_implies(ours: UniqueKey, theirs: UniqueKey) -> None:
    assert found(rules(ours), rules(theirs)) == []


def test_a_column_that_counts_by_itself_only_here_makes_no_duplicates() -> None:
    here = CREATE.replace("`v` int", "`v` int, `n` int NOT NULL")
    ours = rules(key("n", name="PRIMARY"), create=here, counting="n")
    assert found(ours, rules()) == []
    assert found(ours, rules(create=here), 4) == [
        "d.t has a PRIMARY KEY (`n`) that its source does not have"
    ]


def test_null_is_stored_as_another_value() -> None:
    assert found(rules(create=NOT_NULL), rules()) == [
        "d.t: v is NOT NULL, but may be NULL on its source"
    ]
    assert found(rules(), rules(create=NOT_NULL)) == []


def test_collations_matter_in_keys() -> None:
    other = rules(key("w"), collation="utf8mb4_0900_ai_ci")
    assert found(other, rules(key("w"))) == [
        "d.t: w is part of a key and has utf8mb4_0900_ai_ci; on its source it has utf8mb4_bin"
    ]
    assert found(rules(collation="utf8mb4_0900_ai_ci"), rules(key("w"))) == []
    today = rules(key("w"), collation="utf8mb3_bin")
    assert found(today, rules(key("w"), collation="utf8_bin")) == []
    members = CREATE.replace("varchar(9)", "enum('a','b')")
    assert found(rules(key("w"), create=members, collation="x"), rules(key("w"))) == []


def test_what_is_not_known_is_not_refused() -> None:
    strict = rules(key("v"), create=NOT_NULL)
    assert found(strict, None) == []
    other_names = rules(create=CREATE.replace("`v`", "`u`"))
    assert found(strict, other_names) == []
    unread = TableRules(other_names.definition, CREATE)
    assert found(rules(key("w"), create=CREATE.replace("`v`", "`u`")), unread) == []


PLACE = "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `g` {}\n) ENGINE=InnoDB"


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("point", "geometry", ["d.t: g is point; on its source it is geometry"]),
        ("geometry", "point", []),  # takes any
        ("point", "point", []),
        (
            "point /*!80003 SRID 0 */",
            "point",
            ["d.t: g has SRID 0; its source has no SRID attribute"],
        ),
        (
            "point NOT NULL /*!80003 SRID 0 */",
            "point NOT NULL /*!80003 SRID 4326 */",
            ["d.t: g has SRID 0; its source has SRID 4326"],
        ),
        ("point /*!80003 SRID 0 */", "point /*!80003 SRID 0 */", []),
        ("point", "point /*!80003 SRID 0 */", []),
    ],
)
def test_shapes_that_a_column_does_not_take(ours: str, theirs: str, words: list[str]) -> None:
    here, there = (rules(create=PLACE.format(each)) for each in (ours, theirs))
    assert found(here, there, 2) == words


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("BLACKHOLE", "InnoDB", ["d.t has ENGINE=BLACKHOLE, which keeps no rows"]),
        ("ARCHIVE", "InnoDB", ["d.t has ENGINE=ARCHIVE, which updates and deletes no rows"]),
        ("BLACKHOLE", "BLACKHOLE", []),
        ("MyISAM", "InnoDB", []),
    ],
)
def test_engines_that_do_not_keep_what_arrives(ours: str, theirs: str, words: list[str]) -> None:
    here, there = (
        rules(create=PLACE.format("int").replace("InnoDB", each)) for each in (ours, theirs)
    )
    assert found(here, there, 2) == words


def test_a_question_that_fails_is_a_misfit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be read must not look like what fits."""
    tables = TablesThere(Mock())

    def fails(_table: RowTable) -> TableRules | None:
        raise pymysql.err.OperationalError(2013, "Lost connection during query")

    monkeypatch.setattr("repair.adapters.tables_there.columns_misfit", lambda *_: None)
    monkeypatch.setattr(
        tables, "definitions", lambda *_: definition_from_create(CREATE, schema="d")
    )
    monkeypatch.setattr(tables, "rules", fails)
    table = RowTable("d", "t", (RowColumn(3, 0, name="id"),), (0,), Origin.DEFINITION)
    content = a_content("a:4", row_tables=(table,))
    why = tables.unlike(content, content.wanted, tables)
    assert why is not None
    assert why.startswith("d.t: its keys and collations were not read: ")
