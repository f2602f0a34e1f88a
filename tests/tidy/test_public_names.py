"""The command line uses Typer, Click and Rich through the names that they publish."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARIES = ("typer", "click", "rich")


def _attributes(tree: ast.AST) -> list[str]:
    """Return private attributes of other objects, and those that setattr or getattr names."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if not is_own and not node.attr.startswith("__"):
                found.append(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named = node.args[1:2] if node.func.id in {"setattr", "getattr", "hasattr"} else []
            names = [str(each.value) for each in named if isinstance(each, ast.Constant)]
            found += [each for each in names if each.startswith("_") and each[:2] != "__"]
    return found


def _modules(tree: ast.AST) -> list[str]:
    """Return imported modules and names of the libraries that are private."""
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        found += [
            name
            for name in names
            if name.partition(".")[0] in LIBRARIES
            and any(part.startswith("_") for part in name.split("."))
        ]
    return found


def test_the_search_finds_private_names() -> None:
    tree = ast.parse("from typer._click import core\nx._y = 1\nsetattr(x, '_z', 2)\nself._own\n")
    assert _modules(tree) == ["typer._click", "typer._click.core"]
    assert sorted(_attributes(tree)) == ["_y", "_z"]


def test_no_private_name_of_a_library_is_used() -> None:
    for path in (ROOT / "gtid_audit").rglob("*.py"):
        tree = ast.parse(path.read_text())
        assert (_attributes(tree), _modules(tree)) == ([], []), path
