"""A function, class or constant that no other line of the project names is dead code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit", "compose")


def _files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _names_of(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines at its top level, without those of Python itself."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.decorator_list or isinstance(node, ast.ClassDef):
                yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from (each.id for each in targets if isinstance(each, ast.Name))


@pytest.mark.long
def test_no_name_is_used_nowhere() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in _files(*PRODUCT, "tests")}
    configuration = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    used = Counter(re.findall(r"\w+", configuration))
    for text in texts.values():
        used.update(re.findall(r"\w+", text))
    defined = {
        (name, str(path.relative_to(ROOT)))
        for path in _files(*PRODUCT)
        for name in _names_of(ast.parse(texts[path]))
        if not name.startswith("__")
    }
    assert len(defined) > 3000
    assert [each for each in sorted(defined) if used[each[0]] == 1] == []
