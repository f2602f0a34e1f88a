"""The mutants of a source: each changes one decision, and nothing that decides nothing."""

import ast

import pytest

from tests.mutate.mutants import count_of, mutant_of
from tests.mutate.run import EQUIVALENT, is_noticed
from tests.mutate.targets import ROOT, TARGETS, Target, files_of

SOURCE = '''
"""A docstring."""
from typing import Any
TABLE = {"A1", "A2"}

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


def test_a_mutant_takes_the_place_of_its_module() -> None:
    """A changed GUARD_CHARACTERS_MAX is seen by the test of a cut message; itself, it is not."""
    tests = ("tests/repair/test_live_guards.py",)
    source = (ROOT / "repair/guard.py").read_text()
    number, *_ = [
        at
        for at in range(count_of(source))
        if mutant_of("repair/guard.py", source, at)[0].after == "if False:"
    ]
    _, tree = mutant_of("repair/guard.py", source, number)
    assert not is_noticed(tests, None, 60.0)
    assert is_noticed(tests, ("repair/guard.py", tree), 60.0)


def test_what_is_equivalent_is_still_there() -> None:
    """A line of equivalent.txt names a place that exists: path | scope | kind | before | after."""
    for line in filter(None, EQUIVALENT.read_text().splitlines()):
        path, scope, kind, before, _after = line.split(" | ")
        source = (ROOT / path).read_text()
        normal = [" ".join(each.split()) for each in ast.unparse(ast.parse(source)).splitlines()]
        assert before in " ".join(normal), line
        assert scope
        assert kind
