"""Which filter of a channel the error of an applier has to do with."""

from dataclasses import replace

import pytest

from tests.snapshots import A, a_channel
from topology.readings.quoted_tables import quoted_tables, tables_of_foreign_key
from topology.rules.filtered_tables import filters_behind

ABSENT = "Error executing row event: 'Table 'd.t' doesn't exist'"
FOREIGN_KEY = (
    "Could not execute Write_rows event on table d.c; Cannot add or update a child row: a foreign"
    " key constraint fails (`d`.`c`, CONSTRAINT `x` FOREIGN KEY (`p`) REFERENCES `p` (`i`)),"
    " Error_code: 1452"
)
TO_ANOTHER = FOREIGN_KEY.replace("REFERENCES `p`", "REFERENCES `e`.`p`")
TWO = "Error 'Unknown table 'd.u,d.t'' on query. Default database: 'd'. Query: 'DROP TABLE u, t'"
DO_DB, IGNORE_DB = "Replicate_Do_DB=d", "Replicate_Ignore_DB=e"
IGNORE = "Replicate_Ignore_Table=d.p,d.t"
WILD_DO = "Replicate_Wild_Do_Table=d.c%"


def behind(text: str, errno: int, *filters: str) -> str:
    channel = replace(a_channel("a", A), filters=filters)
    return filters_behind(channel, "b", errno=errno, text=text)


@pytest.mark.parametrize(
    ("text", "errno", "filters", "said"),
    [
        (ABSENT, 1146, (IGNORE,), f"leaves out the changes of table d.t ({IGNORE}): b may"),
        (ABSENT, 1146, ("Replicate_Do_DB=e",), "changes of table d.t (Replicate_Do_DB=e): b may"),
        (ABSENT, 1146, (DO_DB,), f"channel ({DO_DB}) applies the rows of table d.t, and decides"),
        (ABSENT, 1146, (IGNORE_DB,), f"channel ({IGNORE_DB}) applies the rows of table d.t,"),
        (ABSENT, 1146, ("Replicate_Do_Table=d.t",), "others that this table may refer to."),
        # What is left out counts more than what is let through, wherever the text has it.
        (FOREIGN_KEY, 1452, (IGNORE,), "leaves out the changes of table d.p"),
        (FOREIGN_KEY, 1452, (WILD_DO,), f"leaves out the changes of table d.p ({WILD_DO})"),
        (TO_ANOTHER, 1452, (IGNORE_DB,), f"leaves out the changes of table e.p ({IGNORE_DB})"),
        (TWO, 1051, (IGNORE,), "leaves out the changes of table d.t"),
        # Only the filters that decide are named.
        (ABSENT, 1146, (DO_DB, "Replicate_Ignore_Table=d.x"), f"channel ({DO_DB}) applies the"),
        (ABSENT, 1146, (DO_DB, "Replicate_Do_Table=d.t"), f"({DO_DB}, Replicate_Do_Table=d.t)"),
    ],
)
def test_the_filter_is_named(text: str, errno: int, filters: tuple[str, ...], said: str) -> None:
    assert said in behind(text, errno, *filters)


@pytest.mark.parametrize(
    ("text", "errno", "filters"),
    [
        (ABSENT, 1146, ()),
        (ABSENT, 1146, ("Replicate_Ignore_Table=d.x",)),
        (ABSENT, 1146, ("Replicate_Rewrite_DB=(d,e)",)),
        # Neither definitions nor rows.
        ("Could not execute Update_rows event on table d.t; Lock wait timeout", 1205, (IGNORE,)),
        ("odd", 9999, (IGNORE,)),
        # No table is quoted.
        (
            "Error 'Duplicate column name 'c'' on query. Query: 'ALTER TABLE d.t ADD c'",
            1060,
            (IGNORE,),
        ),
    ],
)
def test_no_filter_is_named(text: str, errno: int, filters: tuple[str, ...]) -> None:
    assert behind(text, errno, *filters) == ""


def test_the_tables_of_a_text() -> None:
    assert quoted_tables(TWO) == (("d", "u"), ("d", "t"))
    assert quoted_tables("Table 't' already exists") == ()
    assert tables_of_foreign_key(FOREIGN_KEY) == (("d", "p"), ("d", "c"))
    assert tables_of_foreign_key(ABSENT) == ()
