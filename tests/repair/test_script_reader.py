"""What is sent of a script: exactly the statements that the `mysql` client would send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.quoting import quote_identifier, quote_string
from repair.applying.script_reader import BrokenScript, ScriptReader
from repair.render import PROLOGUE, render_check, render_script
from repair.sql.statement_sql import DELIMITER
from tests.repair.script_cases import full_plan, steps


def read(script: str, *, escapes: bool = False) -> list[str]:
    reader, found = ScriptReader(script), []
    while (statement := reader.next(backslash_escapes=escapes)) is not None:
        found.append(statement)
    return found


def statements(written: Iterable[str]) -> Iterator[str]:
    """Yield what a step says is sent, without the delimiters with which it is written."""
    for each in written:
        if each.startswith("DELIMITER"):
            continue
        yield each.removesuffix(DELIMITER).removesuffix(";").strip()


@pytest.mark.parametrize("name", sorted(steps()))
def test_the_statements_of_a_script_are_those_of_its_step(name: str) -> None:
    plan = full_plan(steps())
    step = steps()[name]
    expected = [
        *PROLOGUE,
        *step.procedure.session,
        *(each for guard in step.procedure.preconditions for each in guard.statements()),
        *step.procedure.statements,
        *(each for guard in step.procedure.verifications for each in guard.statements()),
    ]
    *found, last = read(render_script(plan, step))
    assert found == list(statements(expected))
    assert last.startswith(f"SELECT IF(@go, 'step {step.number} is done', ")
    for check in step.checks:
        guards = (each for guard in check.guards for each in guard.statements())
        *found, last = read(render_check(plan, step, check))
        assert found == list(statements((*PROLOGUE, *guards)))
        assert last.startswith(f"SELECT IF(@go, 'go on with step {step.number}', ")


parts = st.one_of(
    st.sampled_from(
        ["SET @a = 1", "DO", "/* a; ' */", "/*!50708 x */", "/*+ y; */", "-- '\n", "#`\n"]
    ),
    st.text(st.characters(codec="utf-8")).map(quote_string),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).map(
        quote_identifier
    ),
)


@given(st.lists(st.lists(parts, min_size=1).map(lambda each: f"SELECT {' '.join(each)}")))
def test_no_text_and_no_comment_ends_a_statement(written: list[str]) -> None:
    assert read("".join(f"{each};\n" for each in written)) == [each.rstrip() for each in written]


@pytest.mark.parametrize(
    ("script", "escapes", "expected"),
    [
        (r"SELECT 'a\'; DO 1;", False, [r"SELECT 'a\'", "DO 1"]),
        (r"SELECT 'a\'; DO 1';", True, [r"SELECT 'a\'; DO 1'"]),
        (r'SELECT "\"; DO 1";', True, [r'SELECT "\"; DO 1"']),
        (r"SELECT `\`; DO 1;", True, [r"SELECT `\`", "DO 1"]),
        ("SELECT 'it''s; so'; DO 1", False, None),
        ("SELECT 'it''s; so';", False, ["SELECT 'it''s; so'"]),
        ("-- a; b\n\n--\nDO 1; DO 2;", False, ["DO 1", "DO 2"]),
        ("SELECT 5--1;", False, ["SELECT 5--1"]),
        (";;DO 1;", False, ["DO 1"]),
        ("", False, []),
        ("DELIMITER //\nDO 1; DO 2\n//\nDELIMITER ;\nDO 3;", False, ["DO 1; DO 2", "DO 3"]),
        ("SELECT 1 AS `x`,\nDELIMITER y;", False, ["SELECT 1 AS `x`,\nDELIMITER y"]),
        ("SELECT 'a", False, None),
        ("SELECT /* a;", False, None),
    ],
)
def test_where_a_statement_ends(script: str, expected: list[str] | None, *, escapes: bool) -> None:
    if expected is None:
        with pytest.raises(BrokenScript, match=r"^line 1: "):
            read(script, escapes=escapes)
    else:
        assert read(script, escapes=escapes) == expected


def test_a_statement_may_change_how_the_next_one_is_read() -> None:
    reader = ScriptReader(r"SET sql_mode = ''; SELECT 'a\'; b'; SET sql_mode = 'n'; SELECT '\';")
    assert reader.next(backslash_escapes=False) == "SET sql_mode = ''"
    assert reader.next(backslash_escapes=True) == r"SELECT 'a\'; b'"
    assert reader.next(backslash_escapes=True) == "SET sql_mode = 'n'"
    assert reader.next(backslash_escapes=False) == r"SELECT '\'"
    assert reader.next(backslash_escapes=False) is None


def test_a_broken_script_shows_where_the_statement_begins() -> None:
    reader = ScriptReader("DO 1;\n\nSELECT\n'x")
    assert reader.next(backslash_escapes=False) == "DO 1"
    with pytest.raises(BrokenScript, match=r"^line 3: the statement has no end"):
        reader.next(backslash_escapes=False)
