"""The rules of the house that a machine can check."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from topology.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 400
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

# Old servers know only the old words; whoever must speak to them, or read what they say, is listed
# here with the reason.
OLD_WORDS = re.compile(r"\b(?:master|slave|whitelist|blacklist)\w*", re.IGNORECASE)
MAY_USE_OLD_WORDS = {
    "topology/dialect.py": "the one table of version words",
    "topology/applier_facts.py": "matches the states of old servers' threads",
    "topology/error_texts.py": "matches the texts of old servers",
    "topology/rules/threads.py": "matches the texts of old servers",
    "compose/native/dialect.py": "options by which old servers are started",
    "compose/native/provision.py": "a privilege by its server's name",
    "binlog/adapters/stream_session.py": "user variables and privileges by their server's names",
    "repair/dialect.py": "the questions only the old status tables answer",
    "gtid_audit/commands/spark_submit.py": "an option of Spark's by Spark's name",
}
MARKS = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
FORBIDDEN_TEXT = re.compile(
    r"/work/|/tmp/lab|\.library|\.\./shared|pypi\.org|npmjs|deb\.debian\.org|githubusercontent",
)


# Where findings are proved on real servers.
PROVED_LIVE = ("tests/topology/test_faults_live.py", "tests/gtid_audit/test_content_live.py")


def tracked(*endings: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = [name for name in listed if name.endswith(endings) and (ROOT / name).exists()]
    assert found, f"no file ends in {endings}: the check would check nothing"
    return found


def product_files() -> list[str]:
    return [name for name in tracked(".py") if not name.startswith("tests/")]


@pytest.mark.parametrize("name", product_files())
def test_a_file_is_short_and_says_what_it_is(name: str) -> None:
    text = (ROOT / name).read_text()
    assert len(text.splitlines()) <= LINES_MAX
    assert ast.get_docstring(ast.parse(text)), "a file opens by saying what it knows"


@pytest.mark.parametrize("name", product_files())
def test_functions_are_short(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text())
    too_long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert too_long == []


@pytest.mark.parametrize("name", product_files())
def test_the_current_words_are_used(name: str) -> None:
    found = OLD_WORDS.findall((ROOT / name).read_text())
    if name in MAY_USE_OLD_WORDS:
        assert found, "this file no longer needs its exception"
    else:
        assert found == []


@pytest.mark.parametrize("name", tracked(".py", ".md", ".sh", ".toml", ".yml", ".yaml", "Makefile"))
def test_no_mark_and_no_foreign_place_is_left(name: str) -> None:
    if name == "tests/house/test_tidy.py":
        return
    text = (ROOT / name).read_text()
    assert MARKS.findall(text) == []
    assert FORBIDDEN_TEXT.findall(text) == []


def test_nothing_is_swallowed_in_silence() -> None:
    guilty = []
    for name in product_files():
        text = (ROOT / name).read_text()
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ExceptHandler) and isinstance(node.body[0], ast.Pass):
                caught = ast.unparse(node.type) if node.type else "everything"
                says_why = "#" in lines[node.body[0].lineno - 1]
                if caught in ("everything", "Exception", "BaseException") or not says_why:
                    guilty.append(f"{name}:{node.lineno} swallows {caught}")
    assert guilty == []


def test_every_judged_code_is_proved_on_real_servers_or_said_not_to_be() -> None:
    live = "".join((ROOT / name).read_text() for name in PROVED_LIVE)
    in_words = (ROOT / "tests/topology/scenarios.txt").read_text()
    for entry in CATALOGUE.values():
        if entry.judged:
            assert f'"{entry.code}"' in live or re.search(rf"\b{entry.code}\b", in_words), (
                entry.code
            )


def test_the_catalogue_page_is_the_catalogue() -> None:
    from gtid_audit.catalogue_page import catalogue_page

    assert (ROOT / "docs/catalogue.md").read_text() == catalogue_page(), "run: make docs"


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
