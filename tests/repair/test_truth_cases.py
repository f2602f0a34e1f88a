"""Every strategy with a script is tried for every code that it answers, on real servers.

The cases are those of test_truth_live.py. What is tried in another file is listed here, with the
test; so a new strategy, or a code that it answers from now on, cannot be forgotten.
"""

from pathlib import Path

from repair.strategies.strategy_registry import PLANNERS
from tests.repair.test_truth_live import CASES
from topology.catalogue.strategy_table import strategies_for
from topology.catalogue.verdict_table import CATALOGUE

# The default of its case in test_truth_live.py: no choice names it there.
BY_DEFAULT = {
    ("A1", "position_bypass"),
    ("A7", "start_channel"),
    ("E1", "start_channel"),
    ("H1", "refetch"),
    ("H8", "refetch"),
}
ELSEWHERE = {
    ("A3", "position_bypass"): ("test_by_hand_live.py::test_workers_that_report_nothing_but_1756"),
    ("A4", "start_channel"): "test_again_live.py::test_the_start_that_is_left_is_planned",
    ("S2", "repair_definition"): (
        "../gtid_audit/test_definition_repairs_live.py"
        "::test_what_is_safe_is_planned_and_may_be_cut_anywhere"
    ),
    ("E4", "data_repair"): "test_row_repairs_live.py::test_rows_are_made_alike_on_9_7",
    ("E4", "data_repair_on_source"): (
        "test_row_repairs_live.py::test_the_version_of_the_replica_is_written_on_the_source"
    ),
}


def test_every_strategy_is_tried_for_every_code_that_it_answers() -> None:
    tried = {pair for case in CASES for pair in (case.choice or {}).items()}
    by_default = {case.name.split(", ")[1] for case in CASES if case.choice is None}
    assert {code for code, _ in BY_DEFAULT} == by_default
    assert not tried & (BY_DEFAULT | set(ELSEWHERE))
    to_try = {
        (code, name)
        for code, entry in CATALOGUE.items()
        if entry.has_rule
        for name in strategies_for(code)
        if name in PLANNERS
    }
    assert to_try == tried | BY_DEFAULT | set(ELSEWHERE)


def test_what_is_tried_elsewhere_is_there() -> None:
    for place in ELSEWHERE.values():
        file, _, test = place.partition("::")
        assert f"def {test}(" in (Path(__file__).parent / file).read_text(), place
