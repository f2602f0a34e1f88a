"""Where correctness is not obvious, a module says how it works, and its code is explained.

The share is that of lines of docstrings and comments to lines of code, without blank lines. A group
is measured as one: its modules explain one thing together.
"""

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence

import pytest

from tests.tidy.test_tidy import ROOT

LEAST = 0.35
EXPLAINED: Mapping[str, Sequence[str]] = {
    "two-phase collection": ("topology/adapters/collect.py",),
    "facts and suppression": ("topology/facts/edge_facts.py", "topology/suppression.py"),
    "planner": ("repair/planner.py",),
    "model": (
        "repair/model/actions.py",
        "repair/model/invariants.py",
        "repair/model/replication_model.py",
    ),
    "fast path of the fleet audit": ("spark_audit/clean_clusters.py",),
    "its proof": ("spark_audit/evaluate_batch.py",),
    "set kernels": (
        "gtid/kernels/reading.py",
        "gtid/kernels/combining.py",
        "gtid/kernels/writing.py",
    ),
    "walk and hop": ("binlog/kernels/walking.py", "binlog/kernels/hopping.py"),
    "parallel parts": ("binlog/ledger/parallel_parts.py",),
    "content comparison": (
        "binlog/content/compare.py",
        "binlog/content/compared_parts.py",
        "binlog/content/content_digest.py",
        "binlog/content/reuse.py",
    ),
    "schema tracker": ("binlog/schema/tracker.py",),
    "run directory": (
        "topology/adapters/run_directory.py",
        "topology/adapters/parquet.py",
        "topology/adapters/stored_runs.py",
        "spark_audit/adapters/result_place.py",
        "spark_audit/adapters/results.py",
        "spark_audit/adapters/runs.py",
    ),
}
_NO_CODE = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def lines_of(text: str) -> tuple[int, int]:
    """Return the number of lines that explain, and of those with code."""
    shown = text.splitlines()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) is not None and first is not None:
                documented.update(range(first.lineno, (first.end_lineno or 0) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= documented
    explaining = {line for line in documented if shown[line - 1].strip()} | (comments - code)
    return len(explaining), len(code)


def test_lines_are_counted() -> None:
    text = '"""One.\n\nTwo.\n"""\n\n# three\nx = 1  # not counted\ny = """a\nb"""\n'
    assert lines_of(text) == (4, 3)


@pytest.mark.parametrize("what", EXPLAINED)
def test_what_is_hard_is_explained(what: str) -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in EXPLAINED[what]]
    assert any("How it works\n---" in text for text in texts)
    counts = [lines_of(text) for text in texts]
    explaining, code = (sum(each) for each in zip(*counts, strict=True))
    assert explaining >= LEAST * code, f"{explaining / code:.2f}"
