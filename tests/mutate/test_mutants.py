"""The mutants of a source: each changes one decision, and nothing that decides nothing."""

import ast
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.mutate.in_place import changed_functions, put_functions
from tests.mutate.lines import Watch, lines_of_statement
from tests.mutate.mutants import count_of, mutant_of
from tests.mutate.run import EQUIVALENT
from tests.mutate.session import GivenTests, WithoutMutantFailed, examine
from tests.mutate.targets import ROOT, TARGETS, Target, files_of

SOURCE = '''
"""A docstring."""
from typing import Any
__all__ = ["TABLE", "decide"]
TABLE = {"A1", "A2"}
Outcome: TypeAlias = int | str

def decide(a: int, b: Any = 1) -> bool:
    """A docstring."""
    assert a < 3
    text = "x" + f"{a == b}"
    if a < 2 and not b:
        print(text)
        return True
    return any(each in TABLE for each in (a,) if each > 0)
'''
CHANGES = {
    ("element dropped", "TABLE = {'A2'}"),
    ("element dropped", "TABLE = {'A1'}"),
    ("always True", "if True:"),
    ("always False", "if False:"),
    ("and/or", "if a < 2 or not b:"),
    ("operand dropped", "if not b:"),
    ("operand dropped", "if a < 2:"),
    ("comparison", "if a <= 2 and (not b):"),
    ("comparison", "if a >= 2 and (not b):"),
    ("constant", "if a < 3 and (not b):"),
    ("not dropped", "if a < 2 and b:"),
    ("statement dropped", "pass"),
    ("constant", "return False"),
    ("comparison", "return any((each not in TABLE for each in (a,) if each > 0))"),
    ("filter dropped", "return any((each in TABLE for each in (a,) if True))"),
    ("comparison", "return any((each in TABLE for each in (a,) if each >= 0))"),
    ("comparison", "return any((each in TABLE for each in (a,) if each <= 0))"),
    ("constant", "return any((each in TABLE for each in (a,) if each > 1))"),
}


def test_every_decision_is_changed_and_nothing_else() -> None:
    mutants = [mutant_of("m.py", SOURCE, at)[0] for at in range(count_of(SOURCE))]
    assert {(each.kind, each.after) for each in mutants} == CHANGES
    assert len(mutants) == len(CHANGES)
    assert {each.scope for each in mutants} == {"module", "decide"}
    assert len({each.key for each in mutants}) == len(mutants)


def test_a_mutant_has_the_line_of_what_it_changes() -> None:
    """The clause of a comprehension has no line of its own."""
    source = "def f(a, b):\n    return [\n        each\n        for each in (a, b)\n    ]\n"
    lines = [mutant_of("m.py", source, at)[0].line for at in range(count_of(source))]
    assert lines == [4, 4]


def test_a_guard_against_an_absent_fact_is_no_decision() -> None:
    source = "def f(a, b):\n    return a or GtidSet(), a or (), a or '', a or 0, a or b\n"
    mutants = [mutant_of("m.py", source, at)[0] for at in range(count_of(source))]
    dropped = [each.after for each in mutants if each.kind == "operand dropped"]
    assert [after.partition("return ")[2] for after in dropped] == [
        "(GtidSet(), a or (), a or '', a or 0, a or b)",
        "(a or GtidSet(), (), a or '', a or 0, a or b)",
        "(a or GtidSet(), a or (), '', a or 0, a or b)",
        "(a or GtidSet(), a or (), a or '', 0, a or b)",
        "(a or GtidSet(), a or (), a or '', a or 0, b)",
        "(a or GtidSet(), a or (), a or '', a or 0, a)",
    ]


def test_limits_assertions_and_how_a_field_prints_are_left_alone() -> None:
    source = """
LIMIT_MAX = 8 * 1024
_ROWS_PER_SECOND: Final = 50
GNO_MAX = (1 << 63) - 2
PAIRS = zip(a, b, strict=True)
class C:
    kept: int = field(default=1, repr=False, compare=False)
"""
    mutants = [mutant_of("m.py", source, at)[0] for at in range(count_of(source))]
    assert [each.after for each in mutants] == [
        "GNO_MAX = (1 << 63) + 2",
        "GNO_MAX = 1 << 63",
        "GNO_MAX = (2 << 63) - 2",
        "GNO_MAX = (1 << 64) - 2",
        "GNO_MAX = (1 << 63) - 3",
        "kept: int = field(default=2, repr=False, compare=False)",
    ]


def test_a_function_made_by_another_gets_its_new_code_too() -> None:
    """A table holds what a factory made when its module was imported."""
    source = "def make(a):\n    return lambda b: b + a\n"
    old, new = compiled(source), compiled(source.replace("b + a", "b - a"))
    names: dict[str, Any] = {}
    exec(old, names)
    made = names["make"](1)
    changed = changed_functions(old, new)
    assert changed is not None
    assert put_functions([names["make"], made], changed) == 1
    assert (made(5), names["make"](1)(5)) == (4, 4)


def test_a_mutant_compiles_and_differs() -> None:
    for at in range(count_of(SOURCE)):
        mutant, tree = mutant_of("m.py", SOURCE, at)
        compile(tree, "m.py", "exec")
        assert mutant.before != mutant.after
        assert ast.unparse(tree) != ast.unparse(ast.parse(SOURCE))


def test_there_is_an_end() -> None:
    with pytest.raises(IndexError):
        mutant_of("m.py", SOURCE, count_of(SOURCE))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.files[0])
def test_the_targets_are_there(target: Target) -> None:
    for path in files_of(target):
        assert count_of((ROOT / path).read_text()) or path.endswith("__init__.py")
    for name in (*target.tests, *target.slow):
        assert (ROOT / name).exists()


def test_every_test_of_the_planner_without_servers_is_given_mutants() -> None:
    """A test that is forgotten here lets mutants pass that it would notice."""
    given = {name for target in TARGETS for name in (*target.tests, *target.slow)}
    there = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests/repair").glob("test_*.py")
        if "_live" not in path.name
    }
    assert there - given == set()


REUSE = "binlog/content/reuse.py"


def places_in_reuse(after: str) -> list[tuple[str, int]]:
    source = (ROOT / REUSE).read_text()
    numbers = range(count_of(source))
    return [(REUSE, at) for at in numbers if mutant_of(REUSE, source, at)[0].after == after]


@pytest.mark.slow
def test_a_mutant_takes_the_place_of_a_function_or_of_its_module() -> None:
    changes = ("FIRST_COMPARED: Final = 5", "self._is_cut = False")
    places = [place for change in changes for place in places_in_reuse(change)]
    found = list(
        examine(GivenTests(("tests/binlog/test_reuse.py",)), [places], time.monotonic() + 60)
    )
    assert {each.mutant.after for each in found if each.is_noticed} >= {changes[0], changes[1]}


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_notice_nothing() -> None:
    with pytest.raises(WithoutMutantFailed):
        list(
            examine(
                GivenTests(("tests/mutate/targets.py",)),
                [places_in_reuse("self._is_cut = False")],
                0.0,
            )
        )


def compiled(source: str) -> CodeType:
    return compile(source, "m.py", "exec")


def test_code_of_functions_is_replaced_and_nothing_else() -> None:
    before = (
        "LIMIT = 1\nclass C:\n  n = 1\n  def f(self):\n    return 1\ndef g():\n  return True\n"
        "TABLE = tuple(n for n in (1, 2) if n > 1)\nclass D:\n    NAMES = {n: n for n in (1, 2)}\n"
    )
    for old, new, changed in (
        ("    return 1", "    return 2", {("C.f", 4)}),
        ("return True", "return 1", {("g", 6)}),
        ("LIMIT = 1", "LIMIT = True", None),
        ("  n = 1", "  n = 2", None),
        ("def g()", "def h()", None),
        # What makes a table is no function: no test executes it, and nothing holds it.
        ("TABLE = tuple(n for n in (1, 2) if n > 1)", "TABLE = tuple(n for n in (1, 2))", None),
        ("    NAMES = {n: n for n in (1, 2)}", "    NAMES = {n: 0 for n in (1, 2)}", None),
    ):
        found = changed_functions(compiled(before), compiled(before.replace(old, new)))
        assert (None if found is None else set(found)) == changed, new


def test_what_is_equivalent_has_a_reason() -> None:
    """Lines of equivalent.txt stand below their reason, and their code is still there."""
    reason = ""
    for line in EQUIVALENT.read_text().splitlines():
        if not line or line.startswith("#"):
            reason = line
            continue
        path, scope, kind, before, after = line.split(" | ")
        code = ast.unparse(ast.parse((ROOT / path).read_text())).splitlines()
        assert before in map(str.strip, code), line
        assert reason
        assert all((scope, kind, before, after))


def test_a_statement_is_its_lines_without_those_inside_it() -> None:
    source = "if a and (\n    b\n):\n    c = 1\nelse:\n    d = (\n        2\n    )\nmatch a:\n  case 1:\n    e()\n"
    tree = ast.parse(source)
    found = {line: list(lines_of_statement(tree, line)) for line in (1, 2, 4, 6, 7, 10, 11)}
    assert found == {
        1: [1, 2, 3],
        2: [1, 2, 3],
        4: [4],
        6: [6, 7, 8],
        7: [6, 7, 8],
        10: [9, 10],
        11: [11],
    }


def test_a_watch_sees_the_lines_of_its_files(tmp_path: Path) -> None:
    found = []
    for name in ("watched.py", "other.py"):
        path = tmp_path / name
        path.write_text("def f(a):\n    if a:\n        return 1\n    return 2\n")
        names: dict[str, Callable[[bool], int]] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        found.append(names["f"])
    watch = Watch([str(tmp_path / "watched.py")])
    before = sys.gettrace()
    try:
        watch.start()
        assert [f(True) for f in found] == [1, 1]
        seen = watch.take()
    finally:
        sys.settrace(before)
    assert {line for _, line in seen} == {2, 3}
    assert {path for path, _ in seen} == {str(tmp_path / "watched.py")}
    assert watch.take() == set()
