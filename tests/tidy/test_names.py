"""Words and names: the rules of CONTRIBUTING.md on language that a machine can check."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, product_trees, tracked

# Private metaphors and bookish words, in code, comments, texts and docs: what to write instead.
INSTEAD = {
    "heal|heals|healed": "clears, catches up",
    "mend|mends|mended": "repair, fix",
    "told": "reported",
    r"judg\w*": "evaluate",
    r"grave\w*": "severe",
    "whoever|somebody|nobody": "the operator, a client, no server",
    "lacks|lacking": "is missing, does not have",
    "given again": "reused",
    "aloud|in silence": "with an error, silently",
    "honest|mortal": "a term of the field",
}
# A basename that two packages use for the same thing.
ALIKE = {"__init__": "a package's header", "errors": "the errors of a package"}


@cache
def _texts() -> dict[str, str]:
    """Return what is read for words: product code, and docs."""
    pages = [name for name in tracked(".md") if name != "CHANGELOG.md"]
    return {name: text for name, (text, _) in product_trees().items()} | {
        name: (ROOT / name).read_text() for name in pages
    }


def _lines(pattern: str) -> list[str]:
    """Return the places in product code and docs that use a word."""
    word = re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])", re.IGNORECASE)
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in _texts().items()
        if word.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if word.search(line)
    ]


@pytest.mark.parametrize("pattern", INSTEAD)
def test_the_words_are_those_of_the_field(pattern: str) -> None:
    assert _lines(pattern) == [], f"write instead: {INSTEAD[pattern]}"


def test_a_word_is_found() -> None:
    assert _lines("reported"), "the check reads the code and the docs"


def _product() -> list[str]:
    return [name for name in product_trees() if not name.startswith("benchmarks/")]


def test_a_module_name_is_used_for_one_thing() -> None:
    places = defaultdict(list)
    for name in _product():
        places[Path(name).stem].append(name)
    twice = {stem: names for stem, names in places.items() if len(names) > 1}
    assert twice.keys() == ALIKE.keys(), twice


def test_a_class_name_has_one_meaning() -> None:
    places = defaultdict(list)
    for name, (text, _) in product_trees().items():
        for found in re.findall(r"(?m)^class ([A-Z]\w*)", text):
            places[found].append(name)
    assert len(places) > 300
    assert {found: names for found, names in places.items() if len(names) > 1} == {}
