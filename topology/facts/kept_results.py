"""Keeps results together with the objects from which they were made.

A result holds as long as each of these objects is the same object (`is`). For frozen objects that
is a sufficient condition, and it costs no comparison of sets. kept_inputs.py lists the objects.
"""

from collections.abc import Callable, Hashable
from operator import is_
from typing import Any, Final, TypeAlias, TypeVar

Result = TypeVar("Result")
Inputs: TypeAlias = tuple[object, ...]


class KeptResults:
    """Results by key, each with the objects from which it was made. For one cluster, one thread."""

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[Inputs, Any]] = {}
        self._values: dict[Hashable, object] = {}

    def get(self, key: Hashable, inputs: Inputs, compute: Callable[[], Result]) -> Result:
        """Return the result that was kept for these very objects; compute it otherwise."""
        held = self._results.get(key)
        if held is not None and _are_same(held[0], inputs):
            found: Result = held[1]
            return found
        result = compute()
        self._results[key] = (inputs, result)
        return result

    def one(self, key: Hashable, value: Inputs) -> Inputs:
        """Return an equal tuple that was given before; otherwise keep this one."""
        held = self._values.get(key)
        if held == value:
            assert isinstance(held, tuple), "only tuples are kept here"
            return held
        self._values[key] = value
        return value


class _NothingKept(KeptResults):
    """Computes everything: the definition, with which tests compare what is kept."""

    def get(
        self,
        key: Hashable,  # noqa: ARG002 - the same parameters
        inputs: Inputs,  # noqa: ARG002
        compute: Callable[[], Result],
    ) -> Result:
        """Compute the result."""
        return compute()


NOTHING_KEPT: Final = _NothingKept()


def _are_same(held: Inputs, inputs: Inputs) -> bool:
    return len(held) == len(inputs) and all(map(is_, held, inputs))
