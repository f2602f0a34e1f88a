"""Which cases reach a mutant and get another value there: no other case can notice it.

How it works
------------
A mutant changes one expression, or drops one statement. Instead of one run for each mutant, one run
tries all of them: each expression that a mutant changes is replaced by a call that gets its value
and, as functions without arguments, what each mutant has in its place:

    if a and b:      =>      if __probe__(a and b, True, (7, 8), lambda: a or b, lambda: b):

The call evaluates the others too, records the mutants whose value differs, and returns the value
of the original: the run goes on as without mutants. An exception is a difference. Where only the
truth of a value matters (the condition of `if`), only that is compared. For a dropped statement it
is recorded that it was reached. So the record has every mutant that this case could notice, and
some that it does not notice because the difference is lost on the way.

A difference may be lost before a function returns. So when a call of a function ends, each mutant
of it that differed in this call is called with the same arguments. It is recorded if it returns
something else. What a generator yields is a list here: the functions are pure.

What an evaluation of a mutant calls is not recorded: it does not happen in reality.

Only code of top-level functions and methods is replaced (in_place.py): a closure has other variables
in cells when a lambda uses them.
"""

import ast
import builtins
import copy
import signal
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Self

from tests.mutate.in_place import changed_functions, put_functions

_PROBE, _REACHED, _CALLED = "__probe__", "__reached__", "__called__"
_SECONDS_A_CALL = 2.0
_UNBOUND = "__unbound__"  # its evaluation raises, which is a difference
# Fields and positions from the module down to a node.
Way = tuple[tuple[str, int | None], ...]


class Probes:
    """Records which mutants differ from the original, one case after the other."""

    def __init__(self, count: int) -> None:
        self._different = bytearray(count)
        self._returned = bytearray(count)
        self._is_busy = False
        self._calls: list[Called] = []

    def __enter__(self) -> Self:
        for name, function in self._names.items():
            setattr(builtins, name, function)
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            delattr(builtins, name)
        for each in self._calls:
            each.restore()

    @property
    def _names(self) -> Mapping[str, Callable[..., object]]:
        return {_PROBE: self._probe, _REACHED: self._reached, _CALLED: self._called}

    def take(self) -> list[int]:
        """Return the numbers of the mutants that differed since the last call."""
        pairs = zip(self._different, self._returned, strict=True)
        found = [number for number, each in enumerate(pairs) if any(each)]
        self._different = bytearray(len(self._different))
        self._returned = bytearray(len(self._returned))
        return found

    def watch(self, function: FunctionType, mutants: Mapping[int, CodeType]) -> None:
        """Compare what a function returns with what its mutants return, call by call."""
        self._calls.append(Called(function, mutants, len(self._calls)))

    def _called(self, number: int, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        called = self._calls[number]
        if self._is_busy:
            return called.original(*args, **kwargs)
        before = [each for each in called.mutants if self._different[each]]
        for each in before:
            self._different[each] = False
        result = called.returned(called.original, args, kwargs)
        self._is_busy = True
        for each, mutant in called.mutants.items():
            if self._different[each] and not self._returned[each]:
                self._returned[each] = called.differs(mutant, args, kwargs, result)
            self._different[each] = False
        self._is_busy = False
        for each in before:
            self._different[each] = True
        return iter(result) if called.is_generator and isinstance(result, list) else result

    def _reached(self, numbers: tuple[int, ...]) -> None:
        if not self._is_busy:
            for number in numbers:
                self._different[number] = True

    def _probe(
        self,
        value: object,
        is_truth: bool,
        numbers: tuple[int, ...],
        *others: Callable[[], object],
    ) -> object:
        if self._is_busy:
            return value
        self._is_busy = True
        for number, other in zip(numbers, others, strict=True):
            if not self._different[number]:
                self._different[number] = _differs(value, other, is_truth=is_truth)
        self._is_busy = False
        return value


_GENERATOR = 0x20  # CO_GENERATOR


class Called:
    """A function, and mutants of it that are called with the same arguments."""

    def __init__(
        self, function: FunctionType, mutants: Mapping[int, CodeType], number: int
    ) -> None:
        self._function = function
        self._kept = function.__code__, function.__defaults__, function.__kwdefaults__
        self.is_generator = bool(function.__code__.co_flags & _GENERATOR)
        self.original = self._with(function.__code__)
        self.mutants = {each: self._with(code) for each, code in mutants.items()}
        source = f"def called(*args, **kwargs):\n    return {_CALLED}({number}, args, kwargs)\n"
        [stub] = [
            each
            for each in compile(source, function.__code__.co_filename, "exec").co_consts
            if isinstance(each, CodeType)
        ]
        function.__code__, function.__defaults__, function.__kwdefaults__ = stub, None, None

    def restore(self) -> None:
        """Put back what the function had."""
        made = self._function
        made.__code__, made.__defaults__, made.__kwdefaults__ = self._kept

    def _with(self, code: CodeType) -> FunctionType:
        of = self._function
        made = FunctionType(code, of.__globals__, of.__name__, self._kept[1])
        made.__kwdefaults__ = self._kept[2]
        return made

    def returned(
        self, function: FunctionType, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Return what a call returns, or the list of what it yields."""
        result = function(*args, **kwargs)
        return list(result) if self.is_generator else result

    def differs(
        self,
        mutant: FunctionType,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        result: object,
    ) -> bool:
        """Return whether a mutant returns something else; an exception, or no end, is that."""
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_A_CALL)
        try:
            return _differs(result, lambda: self.returned(mutant, args, kwargs), is_truth=False)
        except Endless:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Endless(BaseException):
    """A mutant takes too long."""


def stop(_signal: int, _frame: object) -> None:
    """End what takes too long: the handler of SIGALRM."""
    raise Endless


def _differs(value: object, other: Callable[[], object], *, is_truth: bool) -> bool:
    try:
        found = other()
        if is_truth:
            return bool(found) != bool(value)
        return type(found) is not type(value) or found != value
    except Exception:  # noqa: BLE001 - a mutant may raise anything, and that is a difference
        return True


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a mutant differs, and the expression that it has there; None for a statement."""

    way: Way
    other: ast.expr | None


def put_probes(
    functions: Iterable[FunctionType],
    source: str,
    file: str,
    mutants: Mapping[int, Difference],
) -> None:
    """Put code with probes into the functions of a file: its mutants, by number."""
    others: dict[Way, list[tuple[int, ast.expr]]] = {}
    reached: dict[Way, list[int]] = {}
    for number, each in mutants.items():
        if each.other is not None:
            others.setdefault(each.way, []).append((number, each.other))
        else:
            reached.setdefault(each.way, []).append(number)
    tree = _Rewriting(others, reached).of_module(ast.parse(source))
    changed = changed_functions(compile(source, file, "exec"), compile(tree, file, "exec"))
    if changed is not None:
        put_functions(functions, changed)


def difference(old: ast.Module, new: ast.Module, line: int) -> Difference:
    """Return where a mutant differs from the original, in the statement at a line."""
    begins = [each.lineno for each in old.body]
    at = bisect_right(begins, line) - 1
    way = _way(old.body[at], new.body[at], (("body", at),))
    found = _node(new, way)
    if not isinstance(found, ast.expr):
        return Difference(way, None)
    if _bound(found) != _bound(_node(old, way)):
        found = ast.Name(_UNBOUND, ast.Load())
    return Difference(way, found)


def _bound(node: ast.AST) -> list[str]:
    """Return what an expression binds to names (`:=`), which its value does not show."""
    return [ast.dump(each) for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]


def _way(old: ast.AST, new: ast.AST, way: Way) -> Way:
    """Return the way to the smallest expression or statement in which two trees differ."""
    kept = way
    while True:
        children = list(_children(old))
        others = dict(_children(new))
        if [step for step, _ in children] != list(others) or not _same_plain(old, new):
            return kept
        differing = [
            (step, each) for step, each in children if ast.dump(each) != ast.dump(others[step])
        ]
        if len(differing) != 1:
            return kept
        [(step, old)] = differing
        new, way = others[step], (*way, step)
        if isinstance(new, ast.stmt) or (
            isinstance(new, ast.expr) and not isinstance(new, ast.Starred | ast.Slice)
        ):
            kept = way
        if type(old) is not type(new):
            return kept


def _same_plain(old: ast.AST, new: ast.AST) -> bool:
    return all(
        value == getattr(new, name) and type(value) is type(getattr(new, name))
        for name, value in ast.iter_fields(old)
        if not isinstance(value, ast.AST | list)
    )


def _children(node: ast.AST) -> Iterator[tuple[tuple[str, int | None], ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (name, None), value
        elif isinstance(value, list):
            yield from (
                ((name, at), each) for at, each in enumerate(value) if isinstance(each, ast.AST)
            )


def _node(tree: ast.AST, way: Way) -> ast.AST:
    for name, at in way:
        held = getattr(tree, name)
        tree = held if at is None else held[at]
    return tree


class _Rewriting:
    """Puts probes into a tree, those inside an expression before the one around it."""

    def __init__(
        self,
        others: Mapping[Way, Sequence[tuple[int, ast.expr]]],
        reached: Mapping[Way, Sequence[int]],
    ) -> None:
        self._others = others
        self._reached = reached

    def of_module(self, tree: ast.Module) -> ast.Module:
        self._below(tree, (), is_truth=False)
        return ast.fix_missing_locations(tree)

    def _below(self, node: ast.AST, way: Way, *, is_truth: bool) -> None:
        for name, value in list(ast.iter_fields(node)):
            is_condition = _is_condition(node, name) or (is_truth and isinstance(node, ast.BoolOp))
            if isinstance(value, ast.AST):
                setattr(node, name, self._of(value, (*way, (name, None)), is_truth=is_condition))
            elif isinstance(value, list):
                made: list[object] = []
                for at, each in enumerate(value):
                    below = (*way, (name, at))
                    if below in self._reached:
                        made.append(_reaching(self._reached[below], each))
                    made.append(
                        self._of(each, below, is_truth=is_condition)
                        if isinstance(each, ast.AST)
                        else each
                    )
                setattr(node, name, made)

    def _of(self, node: ast.AST, way: Way, *, is_truth: bool) -> ast.AST:
        self._below(node, way, is_truth=is_truth)
        others = self._others.get(way)
        if others is None or not isinstance(node, ast.expr):
            return node
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        call = ast.Call(
            ast.Name(_PROBE, ast.Load()),
            [
                node,
                ast.Constant(is_truth),
                ast.Tuple([ast.Constant(number) for number, _ in others], ast.Load()),
                *(ast.Lambda(empty, copy.deepcopy(other)) for _, other in others),
            ],
            [],
        )
        return ast.copy_location(call, node)


def _reaching(numbers: Sequence[int], before: ast.AST) -> ast.stmt:
    given = ast.Tuple([ast.Constant(each) for each in numbers], ast.Load())
    call = ast.Call(ast.Name(_REACHED, ast.Load()), [given], [])
    return ast.copy_location(ast.Expr(call), before)


def _is_condition(node: ast.AST, name: str) -> bool:
    match node:
        case ast.If() | ast.IfExp() | ast.While():
            return name == "test"
        case ast.comprehension():
            return name == "ifs"
        case ast.UnaryOp(op=ast.Not()):
            return name == "operand"
        case ast.match_case():
            return name == "guard"
        case _:
            return False
