"""Puts a mutant in the place of what it changes: code of functions, or a whole module.

How it works
------------
A function keeps its identity and gets other code: whoever holds it (an import, a table, a
decorator) calls the mutant from then on, and nothing is imported again. That fits every mutant
that changes functions only. What a function has made before (a lambda in a table) is inside it: its
code is replaced, too. A mutant that changes a table or a default is imported as a whole module, by a
process that has imported no module of the product.

Functions are looked up once, before the forks: a search in a fork touches, and so copies, all that
the process has in memory.
"""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from ast import Module
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

# What a process forgets before it imports a mutant.
OURS = frozenset(
    {"gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit", "compose", "tests"}
)
_COMPREHENSIONS = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})


def changed_functions(
    before: CodeType, after: CodeType
) -> Mapping[tuple[str, int], CodeType] | None:
    """Return the new code of functions by name and line; None if anything else differs too."""
    old, new = dict(_functions(before)), dict(_functions(after))
    changed = {place: code for place, code in new.items() if code != old.get(place)}
    if old.keys() != new.keys() or not changed:
        return None
    for place, code in changed.items():
        if code.co_freevars != old[place].co_freevars:
            return None
    return changed if _skeleton(before) == _skeleton(after) else None


def _functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Yield the functions of a module and the methods of its classes, by name and line."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if _is_class(each):
                yield from _functions(each)
            elif each.co_name not in _COMPREHENSIONS:
                yield (each.co_qualname, each.co_firstlineno), each


def _is_class(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names


def _runs_at_import(code: CodeType) -> bool:
    """Return whether code of a module or class makes its tables, and is no function to put."""
    return _is_class(code) or code.co_name in _COMPREHENSIONS


def _skeleton(code: CodeType) -> tuple[object, ...]:
    """Return what a module or class is without the code of its functions."""
    constants = tuple(
        (_skeleton(each) if _runs_at_import(each) else each.co_qualname)
        if isinstance(each, CodeType)
        # 1 == True, and a mutant may put one for the other.
        else (type(each).__name__, repr(each))
        for each in code.co_consts
    )
    return code.co_code, code.co_names, constants


Functions = Mapping[str, Sequence[FunctionType]]


def functions_of(paths: Iterable[str]) -> Functions:
    """Return the functions that are in memory, by the file that they are from."""
    found: dict[str, list[FunctionType]] = {path: [] for path in paths}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in found:
            found[each.__code__.co_filename].append(each)
    return found


def put_functions(
    functions: Iterable[FunctionType], changed: Mapping[tuple[str, int], CodeType]
) -> int:
    """Return functions of a file their new code. Return how many of those that changed there were.

    A function inside another is put as well, unless two have the same name and line.
    """
    inner: dict[tuple[str, int], list[CodeType]] = {}
    for code in changed.values():
        for each in _inside(code):
            inner.setdefault((each.co_qualname, each.co_firstlineno), []).append(each)
    found = 0
    for function in functions:
        place = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        new = changed.get(place)
        if new is not None:
            function.__code__ = new
            found += 1
            continue
        [made, *others] = inner.get(place, [None])
        if made is not None and not others and _fits(function.__code__, made):
            function.__code__ = made
    return found


def _inside(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


def _fits(before: CodeType, after: CodeType) -> bool:
    return before.co_freevars == after.co_freevars


class MutantImporter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another tree when it is imported."""

    def __init__(self, name: str, path: str, tree: Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        is_package = self._path.endswith("__init__.py")
        return importlib.util.spec_from_file_location(
            fullname,
            self._path,
            loader=self,
            submodule_search_locations=[str(Path(self._path).parent)] if is_package else None,
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, self._path, "exec"), module.__dict__)


def put_module(root: Path, path: str, tree: Module) -> None:
    """Have the next import of a module give the mutant, and forget what was imported."""
    for name in [each for each in sys.modules if each.partition(".")[0] in OURS]:
        del sys.modules[name]
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    sys.meta_path.insert(0, MutantImporter(name, str(root / path), tree))
