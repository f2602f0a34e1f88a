"""The rules of CONTRIBUTING.md that a machine can check."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

from topology.catalogue.verdict_table import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
OURSELVES = "tests/tidy/test_tidy.py"
LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Old servers know only the old words; whoever must speak to them, or read what they say, is listed
# here with the reason.
OLD_WORDS = re.compile(r"(?:\b|_)(?:master|slave|whitelist|blacklist)\w*", re.IGNORECASE)
TOP_LEVEL = {
    *("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit"),
    *("tests", "benchmarks", "compose", "deploy", "docs", "requirements"),
    *(".ci", ".editorconfig", ".github", ".gitignore", ".pre-commit-config.yaml", "Makefile"),
    *("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
    "pyproject.toml",
}
MAY_USE_OLD_WORDS = {
    "topology/readings/dialect.py": "the one table of version words",
    "topology/rules/passing_on.py": "cites a function of MySQL",
    "repair/model/replication_model.py": "cites functions of MySQL",
    "repair/sql/privileges.py": "a privilege by its server's name",
    "topology/adapters/reading_statements.py": "cites a constant of MySQL",
    "repair/strategies/configuring.py": "an option that the configuration file of an old server has",
    "topology/facts/applier_facts.py": "matches the states of old servers' threads",
    "topology/facts/applier_workers.py": "matches the states of old servers' threads",
    "topology/catalogue/receiver_errors.py": "matches the texts of old servers",
    "topology/facts/refusal_texts.py": "writes the texts of old servers",
    "topology/catalogue/error_texts.py": "matches the texts of old servers",
    "topology/catalogue/applier_errors.py": "matches the texts of old servers",
    "topology/catalogue/client_errors.py": "matches the texts of old servers",
    "topology/catalogue/definition_errors.py": "matches the texts of old servers",
    "topology/catalogue/gtid_errors.py": "matches the texts of old servers",
    "topology/catalogue/next_step_table.py": "a privilege by its server's name",
    "topology/catalogue/logging_errors.py": "matches the texts of old servers",
    "topology/catalogue/quoted_sets.py": "matches the texts of old servers",
    "topology/catalogue/statement_errors.py": "matches the texts of old servers",
    "topology/rules/error_causes.py": "matches the texts of old servers",
    "compose/native/server_setup.py": "options by which old servers are started",
    "compose/native/provision.py": "a privilege by its server's name",
    "binlog/adapters/stream_session.py": "user variables and privileges by their server's names",
    "repair/strategies/copy_commands.py": "an option and a privilege by their programs' names",
    "repair/sql/service_calls.py": "procedures by their services' names",
    "topology/readings/vendors.py": "a privilege by its server's name, a manual's title",
    "repair/sql/channel_queries.py": "the questions only the old status tables answer",
    "gtid_audit/tasks/drift_comparison.py": "a setting by its name on old servers",
    "topology/adapters/definition_statements.py": "a setting by its name on old servers",
    "topology/definitions/canonical.py": "matches the texts of old servers",
    "gtid_audit/commands/spark_submit.py": "an option of Spark's by Spark's name",
}
VAGUE_DOCSTRING = re.compile(r'^ +"""(?:Give|Tell|Say)\b.*', re.MULTILINE)
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


@cache
def product_trees() -> dict[str, tuple[str, ast.Module]]:
    """Return the text and the tree of every file of the product, each parsed once."""
    texts = {name: (ROOT / name).read_text() for name in product_files()}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


def test_a_file_is_short_and_says_what_it_is() -> None:
    trees = product_trees().items()
    assert [name for name, (text, _) in trees if len(text.splitlines()) > LINES_MAX] == []
    assert [name for name, (_, tree) in trees if not ast.get_docstring(tree)] == []


def test_docstrings_say_what_is_returned() -> None:
    """A function returns or yields a value; it does not "give", "tell" or "say" one."""
    vague = [
        f"{name}: {docstring}"
        for name in tracked(".py")
        for docstring in VAGUE_DOCSTRING.findall((ROOT / name).read_text())
    ]
    assert vague == []


def test_functions_are_short() -> None:
    too_long = [
        f"{name}:{node.lineno} {node.name}"
        for name, (_, tree) in product_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_the_current_words_are_used() -> None:
    found = {
        name: words
        for name, (text, _) in product_trees().items()
        if (words := OLD_WORDS.findall(text))
    }
    assert {name: found[name] for name in found.keys() - MAY_USE_OLD_WORDS.keys()} == {}
    assert MAY_USE_OLD_WORDS.keys() - found.keys() == set(), "no longer needs its exception"


def test_only_what_belongs_there_is_at_the_top() -> None:
    """A file that a command left in the working folder must not become a part of the project."""
    assert {name.partition("/")[0] for name in tracked("")} == TOP_LEVEL


def test_no_mark_and_no_foreign_place_is_left() -> None:
    names = tracked(".py", ".md", ".sh", ".toml", ".yml", ".yaml", "Makefile")
    texts = {name: (ROOT / name).read_text() for name in names if name != OURSELVES}
    assert [name for name, text in texts.items() if MARKS.search(text)] == []
    assert [name for name, text in texts.items() if FORBIDDEN_TEXT.search(text)] == []


def test_nothing_is_swallowed_in_silence() -> None:
    guilty = []
    for name, (text, tree) in product_trees().items():
        lines = text.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and isinstance(node.body[0], ast.Pass):
                caught = ast.unparse(node.type) if node.type else "everything"
                says_why = "#" in lines[node.body[0].lineno - 1]
                if caught in ("everything", "Exception", "BaseException") or not says_why:
                    guilty.append(f"{name}:{node.lineno} swallows {caught}")
    assert guilty == []


def test_every_evaluated_code_is_proved_on_real_servers_or_said_not_to_be() -> None:
    live = "".join((ROOT / name).read_text() for name in PROVED_LIVE)
    in_words = (ROOT / "tests/topology/scenarios.txt").read_text()
    for entry in CATALOGUE.values():
        if entry.has_rule:
            assert f'"{entry.code}"' in live or re.search(rf"\b{entry.code}\b", in_words), (
                entry.code
            )


def test_the_catalogue_page_is_the_catalogue() -> None:
    from gtid_audit.catalogue_page import catalogue_page

    assert (ROOT / "docs/catalogue.md").read_text() == catalogue_page(), "run: make docs"


def test_the_scenario_page_is_the_catalogue() -> None:
    from gtid_audit.scenario_page import scenario_page

    written = (ROOT / "docs/reconcile-scenarios.md").read_text()
    assert written == scenario_page(), "run: make docs"


def test_every_server_of_the_docs_is_reached_with_tls() -> None:
    """What a reader copies sends no password in clear text; `option=value` stands for any option.

    A server on the reader's own machine needs no TLS.
    """
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    written = [
        (page.name, dsn)
        for page in pages
        for dsn in re.findall(r"mysql://[^\s`\"')]+", page.read_text())
        if "@127.0.0.1" not in dsn
    ]
    assert len(written) > 15
    bare = [(page, dsn) for page, dsn in written if not re.search(r"\?(ssl|option=value)", dsn)]
    assert bare == []


def test_the_walks_of_the_architecture_lead_through_real_functions() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    walks = page.partition("## Walks through the code")[2].partition("\n## ")[0]
    steps = re.findall(r"`(\w+(?:/\w+)*\.py)`\s+`(\w+)`", walks)
    assert len(steps) > 12
    for file, name in steps:
        tree = ast.parse((ROOT / file).read_text())
        defined = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert name in defined, f"{file} has no {name}"


def test_files_that_pages_name_exist() -> None:
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    named = {
        name for page in pages for name in re.findall(r"`([\w]+/[\w/]+\.\w+)`", page.read_text())
    }
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
