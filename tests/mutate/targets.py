"""Which code decides, and which tests, all without servers, should notice a change of it.

The cheapest tests come first: most mutants are noticed by them, and the rest is not run then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SCENARIOS = ("tests/topology/test_scenarios.py", "tests/topology/test_facts.py")
_HISTORIES = ("tests/topology/test_world.py", "tests/simulation/test_histories.py")


@dataclass(frozen=True)
class Target:
    """Files that decide, and the tests of them in the order in which they are run."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    # For mutants that the tests did not notice: much slower, and left out with QUICK=1.
    slow: tuple[str, ...] = ()


TARGETS: Sequence[Target] = (
    Target(
        (
            *("topology/facts.py", "topology/graph.py", "topology/suppression.py"),
            *("topology/unseen.py", "topology/joining.py", "topology/replication_filters.py"),
            "topology/rules",
        ),
        _SCENARIOS,
        slow=_HISTORIES,
    ),
    Target(
        (
            *("repair/planner.py", "repair/strategies.py", "repair/declaring.py"),
            *("repair/replaying.py", "repair/conflicts.py", "repair/data_repair.py"),
            *("repair/choices.py", "repair/afterwards.py", "repair/evidence.py"),
            *("repair/invariants.py", "repair/emptied.py", "repair/model.py", "repair/start.py"),
            "repair/transaction_content.py",
        ),
        (
            *("tests/repair/test_model.py", "tests/repair/test_planner.py"),
            *("tests/repair/test_evidence.py", "tests/repair/test_data_repair.py"),
            *("tests/repair/test_scripts.py", "tests/repair/test_live_guards.py"),
        ),
        slow=("tests/repair/test_planner_exhaustive.py", *_HISTORIES),
    ),
    Target(
        (
            *("repair/set_procedures.py", "repair/channel_procedures.py"),
            *("repair/row_procedures.py", "repair/replay_procedures.py", "repair/procedures.py"),
            *("repair/script.py", "repair/dialect.py", "repair/guard.py"),
            *("repair/privileges.py", "repair/other_servers.py", "repair/render.py"),
            *("repair/steps.py", "repair/plan.py", "repair/action_content.py"),
            "gtid_audit/plan_again.py",
        ),
        (
            *("tests/repair/test_scripts.py", "tests/repair/test_guards_table.py"),
            *("tests/repair/test_files.py", "tests/repair/test_data_repair.py"),
            *("tests/repair/test_plan_json.py", "tests/repair/test_live_guards.py"),
            *("tests/gtid_audit/test_plan_again.py", "tests/gtid_audit/test_planning.py"),
        ),
        slow=("tests/repair/test_planner.py",),
    ),
    Target(
        ("binlog/content/compare.py", "binlog/content/reuse.py"),
        ("tests/binlog/test_compare.py", "tests/binlog/test_reuse.py"),
    ),
    Target(("spark_audit/clean.py",), ("tests/spark_audit/test_clean.py",)),
)


def files_of(target: Target) -> list[str]:
    """Return the files of a target, folders with all that is in them."""
    found: list[str] = []
    for name in target.files:
        path = ROOT / name
        below = sorted(path.glob("*.py")) if path.is_dir() else [path]
        found += [str(each.relative_to(ROOT)) for each in below]
    return found
