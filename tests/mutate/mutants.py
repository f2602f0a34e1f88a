"""Small changes of Python source, each of which a test should notice.

How it works
------------
A source is parsed, and every place where a decision could be another one is numbered, in the order
in which the tree is walked: the same source gives the same numbers. `count_of` counts them;
`mutant_of` parses again and changes the one with a given number. Comparisons, `and` and `or`, `not`,
conditions, True and False, numbers, operations of sets, elements of tables and statements are
changed. What decides nothing is left alone: annotations, docstrings, assertions (`strict=True` of
zip is one), how a field prints, texts, imports, `__all__`; and limits and speeds that could as well
be another number, by their names (`_MAX`, `_PER_SECOND` …).

Own code, and no library: the well-kept ones rewrite files and start one pytest for each mutant.
Here a process that has everything loaded forks, and takes the mutant in place of one module, which
is ten times as fast for tests of a second.
"""

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import lru_cache
from itertools import islice

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATIONS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
# One more or less of these changes no decision that a test should repeat as a number.
_LIMITS = re.compile(
    r"_(?:MAX|PER_SECOND|PER_LINE|CHARACTERS|CHARACTERS_SHOWN|WIDTH|KEPT|AT_ONCE)$|^_WIDTH$"
)
# Keywords that are assertions, or are about the text of an object alone.
_ASSERTED = {"zip": {"strict"}, "field": {"repr", "compare"}}
Change = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """One change of one file: where, and what becomes what."""

    path: str
    number: int
    line: int
    scope: str  # the function or class it is in
    kind: str
    before: str
    after: str

    @property
    def key(self) -> str:
        """Return what names it although lines above it come and go."""
        return f"{self.path} | {self.scope} | {self.kind} | {self.before} | {self.after}"

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line} in {self.scope}: {self.kind}: {self.before}  =>  {self.after}"
        )


@dataclass(frozen=True)
class _Place:
    """A change that can be made in a tree."""

    node: ast.AST
    scope: str
    kind: str
    make: Change


def count_of(source: str) -> int:
    """Return how many mutants a source has."""
    return sum(1 for _ in _places(ast.parse(source)))


def mutant_of(path: str, source: str, number: int) -> tuple[Mutant, ast.Module]:
    """Return one mutant, and its tree. Raises IndexError."""
    place, tree = _changed(source, number)
    line = _line_of(place)
    old, new = _difference(_lines_of(source), ast.unparse(tree).splitlines())
    return Mutant(path, number, line, place.scope, place.kind, old, new), tree


def tree_of(source: str, number: int) -> tuple[int, ast.Module]:
    """Return the line of one mutant and its tree; its texts take longer. Raises IndexError."""
    place, tree = _changed(source, number)
    return _line_of(place), tree


def _changed(source: str, number: int) -> tuple[_Place, ast.Module]:
    tree = ast.parse(source)
    place = next(islice(_places(tree), number, None), None)
    if place is None:
        raise IndexError(f"there is no mutant {number}")
    place.make()
    return place, ast.fix_missing_locations(tree)


def _line_of(place: _Place) -> int:
    line: int = getattr(getattr(place.node, "pattern", place.node), "lineno", 1)
    return line


@lru_cache(maxsize=8)
def _lines_of(source: str) -> Sequence[str]:
    return ast.unparse(ast.parse(source)).splitlines()


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Return the lines that differ, each side on one line."""
    sides: tuple[list[str], list[str]] = ([], [])
    for line in unified_diff(before, after, lineterm="", n=0):
        if line.startswith(("-", "+")) and not line.startswith(("---", "+++")):
            sides[line[0] == "+"].append(" ".join(line[1:].split()))
    return " ".join(sides[0]), " ".join(sides[1])


def _places(tree: ast.Module) -> Iterator[_Place]:
    yield from _in_block(tree, "body", "module")


def _in_block(owner: ast.AST, name: str, scope: str) -> Iterator[_Place]:
    block: list[ast.stmt] = getattr(owner, name)
    for at, statement in enumerate(block):
        if _is_docstring(statement) or isinstance(
            statement, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass | ast.Raise
        ):
            continue
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            continue
        if _is_limit(statement):
            continue
        if (
            isinstance(statement, ast.AnnAssign)
            and ast.unparse(statement.annotation) == "TypeAlias"
        ):
            continue
        if isinstance(statement, ast.Expr | ast.AugAssign | ast.Continue | ast.Break):
            yield _Place(statement, scope, "statement dropped", _dropping(block, at))
        yield from _in_statement(statement, scope)


def _dropping(block: list[ast.stmt], at: int) -> Change:
    def make() -> None:
        block[at] = ast.Pass()

    return make


def _in_statement(statement: ast.stmt, scope: str) -> Iterator[_Place]:
    inner = scope
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        inner = statement.name if scope == "module" else f"{scope}.{statement.name}"
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases", "args"):
            continue
        if name in ("body", "orelse", "finalbody"):
            yield from _in_block(statement, name, inner)
        elif isinstance(value, ast.expr):
            yield from _in_expression(statement, name, None, scope)
        elif isinstance(value, list):
            for at, each in enumerate(value):
                if isinstance(each, ast.expr):
                    yield from _in_expression(statement, name, at, scope)
                elif isinstance(each, ast.match_case):
                    yield from _in_block(each, "body", scope)
                    if each.guard is not None:
                        yield from _in_expression(each, "guard", None, scope)


def _in_expression(owner: ast.AST, name: str, at: int | None, scope: str) -> Iterator[_Place]:
    """Yield the places of an expression, which stands in a field of its owner."""
    held = getattr(owner, name)
    node: ast.expr = held if at is None else held[at]

    def put(new: ast.expr) -> Change:
        def make() -> None:
            if at is None:
                setattr(owner, name, new)
            else:
                getattr(owner, name)[at] = new

        return make

    if isinstance(node, ast.JoinedStr):
        return
    if name == "test" and isinstance(owner, ast.If | ast.IfExp | ast.While):
        for value in (True, False):
            if not (isinstance(owner, ast.While) and value):
                yield _Place(owner, scope, f"always {value}", put(ast.Constant(value)))
    yield from _of_node(node, scope, put)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            yield from _in_expression(node, field, None, scope)
        elif isinstance(value, list):
            for number, each in enumerate(value):
                if isinstance(each, ast.expr):
                    yield from _in_expression(node, field, number, scope)
                elif isinstance(each, ast.keyword) and not _is_asserted(node, each):
                    yield from _in_expression(each, "value", None, scope)
                elif isinstance(each, ast.comprehension):
                    yield from _in_comprehension(node, each, scope)


def _in_comprehension(owner: ast.AST, clause: ast.comprehension, scope: str) -> Iterator[_Place]:
    yield from _in_expression(clause, "iter", None, scope)
    for at in range(len(clause.ifs)):

        def drop(at: int = at) -> None:
            clause.ifs[at] = ast.Constant(True)

        yield _Place(owner, scope, "filter dropped", drop)
        yield from _in_expression(clause, "ifs", at, scope)


def _of_node(node: ast.expr, scope: str, put: Callable[[ast.expr], Change]) -> Iterator[_Place]:
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                for other in _COMPARED.get(type(operator), ()):
                    yield _Place(node, scope, "comparison", _setting(node.ops, at, other()))
        case ast.BoolOp():
            swapped = copy.copy(node)
            swapped.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _Place(node, scope, "and/or", put(swapped))
            last = len(node.values) - 1
            for at in range(len(node.values)):
                if at == last and isinstance(node.op, ast.Or) and _is_empty(node.values[at]):
                    continue
                left = [each for number, each in enumerate(node.values) if number != at]
                new = left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
                yield _Place(node, scope, "operand dropped", put(new))
        case ast.UnaryOp(op=ast.Not()):
            yield _Place(node, scope, "not dropped", put(node.operand))
        case ast.BinOp() if not _is_text(node):
            for new_operator in _OPERATIONS.get(type(node.op), ()):
                changed = copy.copy(node)
                changed.op = new_operator()
                yield _Place(node, scope, "operation", put(changed))
            if isinstance(node.op, ast.Sub | ast.BitAnd | ast.BitOr):
                yield _Place(node, scope, "right side dropped", put(node.left))
        case ast.Constant(value=bool()):
            yield _Place(node, scope, "constant", put(ast.Constant(not node.value)))
        case ast.Constant(value=int(number)):
            yield _Place(node, scope, "constant", put(ast.Constant(number + 1)))
        case ast.Tuple() | ast.Set() | ast.List() if len(node.elts) > 1 and not _is_target(node):
            for at in range(len(node.elts)):
                fewer = copy.copy(node)
                fewer.elts = [each for number, each in enumerate(node.elts) if number != at]
                yield _Place(node, scope, "element dropped", put(fewer))
        case _:
            return


def _is_empty(node: ast.expr) -> bool:
    """Return whether an expression is an empty value: `x or ()` guards against an absent fact.

    Without it nothing changes where x is there; where it is None the code raises.
    tests/topology/test_missing_facts.py audits every story without each fact.
    """
    match node:
        case ast.Tuple(elts=[]) | ast.Constant(value="" | 0):
            return True
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in ("GtidSet", "LogEvidence", "Policy", "LogQuestions")
        case _:
            return False


def _is_limit(statement: ast.stmt) -> bool:
    """Return whether a name of the module gets a plain number that is a limit or a speed."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            pass
        case _:
            return False
    factors = [value.left, value.right] if isinstance(value, ast.BinOp) else [value]
    is_product = not isinstance(value, ast.BinOp) or isinstance(value.op, ast.Mult)
    plain = all(isinstance(each, ast.Constant | ast.Name) for each in factors)
    return is_product and plain and _LIMITS.search(name) is not None


def _is_asserted(call: ast.expr, keyword: ast.keyword) -> bool:
    return isinstance(call, ast.Call) and keyword.arg in _ASSERTED.get(ast.unparse(call.func), ())


def _setting(operators: list[ast.cmpop], at: int, other: ast.cmpop) -> Change:
    def make() -> None:
        operators[at] = other

    return make


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _is_target(node: ast.Tuple | ast.Set | ast.List) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)
