"""Which tests execute which lines: a test that never executes a changed line cannot notice the change.

How it works
------------
1. The tests run once without a mutant while `sys.settrace` calls back for each line of the files
   that have mutants. Other files cost one call per function.
2. A line that a fixture executed counts for all tests of the file: a fixture can serve several.
3. A mutant belongs to one statement. The tests of the mutant are those that executed a line of it,
   without the statements inside it. Where nothing is known, all tests are.
"""

import ast
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

Line = tuple[str, int]  # an absolute path, and a line
_Trace = Callable[[FrameType, str, Any], Any]


class Watch:
    """Records the lines of some files that are executed."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._seen: set[Line] = set()

    def start(self) -> None:
        """Record from now on, in this thread."""
        sys.settrace(self._call)

    def take(self) -> set[Line]:
        """Return what was executed since the last call."""
        seen, self._seen = self._seen, set()
        return seen

    def _call(self, frame: FrameType, _event: str, _argument: object) -> _Trace | None:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, _event: str, _argument: object) -> _Trace:
        self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def lines_of_statement(tree: ast.Module, line: int) -> range:
    """Return the lines of the innermost statement at a line, up to the first statement inside it."""
    lines = range(line, line + 1)
    for node in ast.walk(tree):  # an inner statement comes after the one around it
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            inside = [each.lineno for each in _blocks(node)]
            lines = range(node.lineno, min([*inside, (node.end_lineno or node.lineno) + 1]))
    return lines if line in lines else range(line, line + 1)


def _blocks(node: ast.stmt) -> list[ast.stmt]:
    cases = getattr(node, "cases", [])
    found = [each for name in ("body", "orelse", "finalbody") for each in getattr(node, name, [])]
    return [*found, *(each for case in cases for each in case.body)]
