"""What stopped an applier, in short: the table, the key and the row, and the server's text once.

A server repeats its error: the text of the coordinator quotes that of a worker, without its end,
and refers to tables of performance_schema. The rules quote both in the explanation of a finding and
in its proof. Here

1. the table, the key and its value come first, if the text has them;
2. the text is shown once: for a row conflict (A2) in the proof, otherwise in the explanation;
3. the coordinator's text is left out where a worker's own text follows.

The JSON document has all texts as they were read. This module evaluates nothing.

Texts, seen on 5.6.24 and 9.7.4: "Could not execute Write_rows event on table d.t; Duplicate entry
'5' for key 't.PRIMARY', Error_code: 1062", and for statements "Error 'Duplicate entry …' on query.
Default database: 'd'. Query: '…'".
"""

import re
from collections.abc import Iterator
from typing import Final

from topology.catalogue.findings import Finding

_CODES: Final = frozenset({"A2", "A3"})
_EXPLAINED: Final = frozenset({"A2"})  # the explanation has the meaning of the text, too
TEXT_FACTS: Final = ("applier error", "receiver error")  # evidence that quotes a server
QUOTED_CHARACTERS_MIN: Final = 40  # a shorter text is no burden
ROWS_MAX: Final = 3
VALUE_CHARACTERS_MAX: Final = 80
ABOVE: Final = "the text above"

_COORDINATOR: Final = re.compile(
    r"Coordinator stopped because there were error\(s\) in the worker\(s\)\..*?"
    r"if any\.;? (?=Worker \d+ failed)",
    re.DOTALL,
)
_EVENT: Final = re.compile(r"Could not execute (?P<event>\w+_rows) event on table (?P<table>\S+);")
_QUERY: Final = re.compile(
    r"Error '.*?' on query\. Default database: '(?P<database>[^']*)'", re.DOTALL
)
_DUPLICATE: Final = re.compile(
    r"Duplicate entry '(?P<value>.*?)' for key '(?P<key>.+?)'", re.DOTALL
)


def short_explanation(finding: Finding) -> str:
    """Return the explanation of a finding: the failing row first, the text at most once."""
    explanation = without_coordinator(finding.explanation)
    if finding.code not in _CODES:
        return explanation
    texts = [without_coordinator(each) for each in _texts(finding)]
    rows = list(dict.fromkeys(row for text in texts for row in _rows(text)))
    if not rows:
        return explanation
    if finding.code in _EXPLAINED:
        for text in texts:
            explanation = explanation.replace(text, "")
    return " ".join(f"{'; '.join(rows[:ROWS_MAX])}. {explanation}".split())


def shown_value(fact: str, value: str, explanation: str) -> str:
    """Return the value of a fact for the proof: a text that the explanation has is not repeated."""
    if fact not in TEXT_FACTS:
        return value
    text = without_coordinator(value)
    if len(text) >= QUOTED_CHARACTERS_MIN and text in explanation:
        return ABOVE
    return text


def without_coordinator(text: str) -> str:
    """Return a text without that of the coordinator, if a worker's own text follows."""
    return _COORDINATOR.sub("", text)


def _texts(finding: Finding) -> Iterator[str]:
    for each in finding.evidence:
        if each.fact in TEXT_FACTS:
            yield each.value


def _rows(text: str) -> Iterator[str]:
    """Yield what each error in a text is about, in words."""
    places = [*_EVENT.finditer(text), *_QUERY.finditer(text)]
    places.sort(key=lambda found: found.start())
    for number, place in enumerate(places):
        end = places[number + 1].start() if number + 1 < len(places) else len(text)
        duplicate = _DUPLICATE.search(text, place.start(), end)
        if "table" in place.groupdict() or duplicate is not None:
            yield f"{_table(place)}{_key(duplicate)}"


def _table(place: "re.Match[str]") -> str:
    found = place.groupdict()
    if "table" in found:
        return f"Table {found['table']} ({found['event']})"
    return f"A statement, default database {found['database'] or 'none'}"


def _key(duplicate: "re.Match[str] | None") -> str:
    if duplicate is None:
        return ""
    value = duplicate["value"]
    if len(value) > VALUE_CHARACTERS_MAX:
        value = f"{value[: VALUE_CHARACTERS_MAX - 1]}…"
    return f", key {duplicate['key']}, value '{value}'"
