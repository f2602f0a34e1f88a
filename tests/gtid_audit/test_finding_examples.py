"""Each code has an example that an audit gives today, on its page and in `explain`."""

from __future__ import annotations

import json
import re
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from gtid_audit.cli import run
from gtid_audit.finding_examples import EXAMPLES_FILE, read_examples
from gtid_audit.views.explain_text import NO_EXAMPLE
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.report_text import WIDTH_WITHOUT_TERMINAL, printing_on, show_report
from tests.finding_words import with_letters
from tests.gtid_audit.examples_of_scenarios import (
    PAGE,
    audit_of,
    example_of,
    finding_of,
    scenarios_with_examples,
    text,
)
from tests.topology.transcript import Scenario
from topology.catalogue.findings import Severity
from topology.catalogue.verdict_table import CATALOGUE

EXAMPLES = read_examples()
REPORTED = [entry.code for entry in CATALOGUE.values() if entry.has_rule]
UNREPORTED = [entry.code for entry in CATALOGUE.values() if not entry.has_rule]
SELECTED = list(scenarios_with_examples())


def test_every_reported_code_has_one_example_and_no_other_has() -> None:
    assert list(EXAMPLES) == REPORTED
    assert Counter(code for code, _ in SELECTED) == Counter(REPORTED)


@pytest.mark.parametrize(("code", "scenario"), SELECTED, ids=[code for code, _ in SELECTED])
def test_an_example_is_what_the_audit_of_its_scenario_gives(code: str, scenario: Scenario) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert EXAMPLES[code] == example_of(finding_of(code, scenario))


def test_the_file_is_the_one_that_approve_writes() -> None:
    assert EXAMPLES_FILE.read_text() == text()


@pytest.mark.parametrize(("code", "scenario"), SELECTED, ids=[code for code, _ in SELECTED])
def test_a_report_has_the_same_words(code: str, scenario: Scenario) -> None:
    finding, example = finding_of(code, scenario), EXAMPLES[code]
    report = report_of(Engine.LOCAL, [audit_of(scenario)])
    paper = StringIO()
    with printing_on(Console(file=paper, width=5000, highlight=False)):
        show_report(report)
    printed = with_letters(paper.getvalue())
    heading = f"{code} {finding.name}  {example.severity.value}, {example.grade.value}"
    lines = [heading, f"where {example.where}", f"what  {example.what}"]
    if example.set is not None:
        lines.append(f"set   {example.set}")
    if code == "U1":  # the report lists what was not read, and why
        lines = ["Not read", f"{finding.replica}  connection"]
    elif finding.severity is Severity.INFO:  # one line each
        lines = [example.what]
    assert [line for line in lines if words_of(line) not in words_of(printed)] == []


def words_of(text: str) -> str:
    """Return a text without what separates a list: several possible causes are one a line."""
    return re.sub(r"[\s·;.]+", " ", text).strip()


@pytest.mark.parametrize("code", REPORTED)
def test_the_page_has_the_example_in_its_section(code: str) -> None:
    example, words = EXAMPLES[code], " ".join(printed_on_page(code).split())
    ending = f" what {example.what}" + (f" set {example.set}" if example.set is not None else "")
    assert words.endswith(f"where {example.where}{ending}")


@pytest.mark.parametrize("code", ["H1", "A4", "F1", "C15"])
def test_explain_shows_what_the_page_has(
    code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH_WITHOUT_TERMINAL))
    shown, document = explained(code, capsys)
    assert document["example"] == EXAMPLES[code].record()
    assert shown.endswith(f"\n{printed_on_page(code)}\n")


@pytest.mark.parametrize("code", UNREPORTED)
def test_explain_says_that_there_is_no_example(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, document = explained(code, capsys)
    assert document["example"] is None
    assert shown.endswith(f"\n\n{NO_EXAMPLE}\n")


def test_the_page_says_where_there_is_no_example() -> None:
    assert PAGE.read_text().count(NO_EXAMPLE) == len(UNREPORTED) > 0


def test_an_example_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    shown, _ = explained("H8", capsys)
    assert max(map(len, shown.splitlines())) <= 50
    assert EXAMPLES["H8"].what in " ".join(shown.split())


def test_a_text_has_no_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Its code may have other causes than the text has."""
    shown, document = explained("1236", capsys)
    assert document["example"] is None
    assert "xample" not in shown


def printed_on_page(code: str) -> str:
    """Return the example in the section of a code."""
    section = PAGE.read_text().partition(f"\n### {code} ")[2].partition("\n#")[0]
    [printed] = section.split("\n```\n")[1:2]
    return printed


def explained(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    """Return what `explain` prints, and its document."""
    assert run(("explain", words)) == 0
    shown = capsys.readouterr().out
    assert run(("explain", words, "--json")) == 0
    return shown, json.loads(capsys.readouterr().out)
