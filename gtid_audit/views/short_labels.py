"""Short labels that still tell things apart: UUIDs and names of servers, 2 of them or 200. Pure.

Each label is the first of several forms in which no other one of the given texts looks the same. So
the same texts get the same labels, and a longer form is used for those alone that need it: UUIDs of
one machine, of a test, or of copied servers can have the same first characters, and servers of one
site have the same first and last ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

Form = Callable[[str], str]

# The shortest first. Two forms never give one label: they differ in length or in the `…`.
_OF_UUIDS: Final[tuple[Form, ...]] = (
    lambda text: text[:8],
    lambda text: text[:13],
    lambda text: f"{text[:4]}…{text[-4:]}",
    lambda text: f"{text[:4]}…{text[-8:]}",
    lambda text: f"{text[:8]}…{text[-12:]}",
    lambda text: text,
)


def labels_of(uuids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Return a label for each UUID: mostly its first 8 characters, at most 36."""
    found = _first_unique([str(each) for each in uuids], _OF_UUIDS)
    return {UUID(text): label for text, label in found.items()}


def fitted_names(names: Sequence[str], *, characters_max: int) -> Mapping[str, str]:
    """Return names of at most so many characters; a long one without its middle or its common end.

    Names that differ in no such form are numbered in their order.
    """
    half = characters_max // 2
    start = _common([*names])
    end = _common([name[::-1] for name in names])[::-1]

    def whole(name: str) -> str:
        return name

    def without_end(name: str) -> str:
        return f"{name.removesuffix(end)}…"

    def without_start(name: str) -> str:
        return f"…{name.removeprefix(start)}"

    def without_middle(name: str) -> str:
        return f"{name[: half - 1]}…{name[-half:]}"

    fitting = [name for name in names if len(name) <= characters_max]
    labels = {name: name for name in fitting}
    long = [name for name in names if name not in labels]
    forms = (whole, without_middle, without_end, without_start)
    found = _first_unique(long, forms, characters_max=characters_max)
    numbered = {
        name: f"{name[: characters_max - 6]}…#{number}"
        for number, name in enumerate(names, start=1)
        if name in long and name not in found
    }
    return {**labels, **found, **numbered}


def _common(texts: Sequence[str]) -> str:
    """Return the longest beginning of all texts; nothing of a single text."""
    lowest, highest = min(texts, default=""), max(texts, default="")
    differ = (at for at, pair in enumerate(zip(lowest, highest, strict=False)) if len({*pair}) > 1)
    return lowest[: next(differ, len(lowest))] if len({*texts}) > 1 else ""


def _first_unique(
    texts: Iterable[str], forms: Sequence[Form], *, characters_max: int = 36
) -> dict[str, str]:
    """Return a label for each text that has one: the first form that fits and is its alone."""
    left = sorted(set(texts))
    labels: dict[str, str] = {}
    for form in forms:
        shown = Counter(form(each) for each in left)
        labels |= {
            each: form(each)
            for each in left
            if shown[form(each)] == 1 and len(form(each)) <= characters_max
        }
        left = [each for each in left if each not in labels]
    return labels
