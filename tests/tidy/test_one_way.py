"""What the product does in one place only."""

import re

from tests.tidy.test_tidy import ROOT, product_files

# How a plural was written before `counted` of gtid/counted_nouns.py did it for every text.
_PLURAL = re.compile(
    r"""(?:"s"|'s'|""|'') if .*[=>]=? ?1 else|[=>]=? ?1 else f"[^"]*s"|else "s\""""
)
_MARK = re.compile(r"""["']_SUCCESS["']""")

# What is asked of a server about its sets. Conditions within statements are no questions.
_SETS = re.compile(r"(?:SELECT |, ?|^ *[\"'(]+)@@GLOBAL\.gtid_(?:owned|executed|purged)\b(?!\))")
_MAY_NAME_SETS = {
    "binlog/adapters/set_statements.py",
    "topology/adapters/offline/statements_to_paste.py",  # tells the operator what to run
}


def _matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}: {line.strip()}"
        for name in product_files()
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if pattern.search(line)
    ]


def test_one_function_writes_plurals() -> None:
    assert [each.split(":")[0] for each in _matching(_PLURAL)] == ["gtid/counted_nouns.py"]


def test_one_module_knows_the_mark_of_a_complete_run() -> None:
    assert [each.split(":")[0] for each in _matching(_MARK)] == [
        "topology/adapters/run_directory.py"
    ]


def test_the_order_of_questions_about_sets_is_decided_in_one_module() -> None:
    adapters = [each for each in _matching(_SETS) if "/adapters/" in each or "/tasks/" in each]
    assert {each.split(":")[0] for each in adapters} == _MAY_NAME_SETS
