"""Reads YAML into plain values in one pass over libyaml's events, without a tree of nodes.

How it works. PyYAML's loaders make a node for each value, with two marks, and then a value for each
node: 2 s for a fleet of 10,000 pairs. The events alone take a tenth of that. This module keeps a
stack of the lists and mappings that are open, and puts each value where it belongs when its event
arrives. The text of a plain scalar is resolved once: ports, `true` and dates repeat.

    event           stack (innermost last)              what happens
    MappingStart    {}                                  a mapping opens
    Scalar "a"      {} key a                            a key waits for its value
    SequenceStart   {} key a, []                        a list opens
    Scalar "1"      {} key a, [1]                       an item
    SequenceEnd     {a: [1]}                            the list is the value of its key

1. The values are those of SafeConstructor. What this module does not know (an explicit tag, a merge
   key, a second document) raises `NotPlain`, and yaml_places.py reads the text through nodes.
2. It refuses what a fleet file must not have, with the line: anchors and aliases, a few lines of
   which can expand to gigabytes; a key that appears twice, of which PyYAML silently keeps the last;
   a key that is not a word; more than DEPTH_MAX levels.
3. It is independent of what the values mean. A `Watch` is asked after each item of one kind of
   list, so that a limit ends the reading and not only the checks that follow it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml
from yaml.constructor import SafeConstructor

DEPTH_MAX: Final = 100  # a fleet file has five levels
# libyaml, where PyYAML was built with it: ten times as fast for a fleet of 10,000 pairs.
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVERS: Final = yaml.SafeLoader.yaml_implicit_resolvers
_NEEDS_NODES: Final = {"tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"}

Mapping: TypeAlias = dict[Any, Any]


class YamlProblem(Exception):
    """Text that is not YAML, or not the accepted subset. Shows the line, never its content."""


class NotPlain(Exception):
    """Text that only PyYAML's own constructor reads."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A limit on the items of lists: `path` is their keys, without the numbers between them.

    `problem` gets the number of items so far and the unfinished values of the whole text. It
    returns the reason to stop, or None.
    """

    path: tuple[str, ...]
    problem: Callable[[int, Mapping], str | None]


class _Open:
    """A list or a mapping whose end was not read yet."""

    __slots__ = ("is_watched", "items", "key", "matched", "other_keys", "values")

    def __init__(self, value: Any, matched: int) -> None:  # noqa: ANN401 - of two types
        is_list = type(value) is list
        self.items: list[Any] | None = value if is_list else None
        self.values: Mapping = _NO_VALUES if is_list else value
        self.key: Any = _NO_KEY
        self.other_keys: set[str] | None = None  # the texts of keys whose values are no texts
        self.matched = matched  # how many keys of the watched path lead here, or _ELSEWHERE
        self.is_watched = False

    def has_key(self, text: str) -> bool:
        """Return whether a key with this text came before: `1` and `'1'` have the same."""
        return text in self.values or (self.other_keys is not None and text in self.other_keys)

    def begin_key(self, text: str, value: Any) -> None:  # noqa: ANN401 - what a YAML key may be
        """Wait for the value of a key."""
        self.key = value
        if type(value) is not str:
            if self.other_keys is None:
                self.other_keys = set()
            self.other_keys.add(text)


_NO_KEY: Final = object()
_ELSEWHERE: Final = -1
_NO_VALUES: Final[Mapping] = {}  # of every list; nothing is put there


class _Builder:
    """The state of one pass."""

    def __init__(self, watch: Watch | None) -> None:
        self.root: Any = None
        self._watch = watch
        self._path = watch.path if watch is not None else ()
        self._watched = len(self._path) if watch is not None else None
        self._count = 0
        self._stack: list[_Open] = []
        self._known: dict[str, Any] = {}
        self._documents = 0

    def take(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's events, which have no common type
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent:
            self._open(event, {})
        elif kind is yaml.SequenceStartEvent:
            self._open(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._stack.pop()
        elif kind is yaml.AliasEvent:
            raise YamlProblem(
                f"line {_line(event)}: an anchor is reused; write out its value, or use defaults"
            )
        elif kind is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                raise NotPlain

    def _scalar(self, event: Any) -> None:  # noqa: ANN401
        text: str = event.value
        if event.tag is not None:
            raise NotPlain
        value = self._plain(text) if event.implicit[0] else text
        if not self._stack:
            self.root = value
            return
        inner = self._stack[-1]
        if inner.items is not None:
            self._append(inner, value, event)
        elif inner.key is _NO_KEY:
            if inner.has_key(text):
                raise YamlProblem(f"line {_line(event)}: the key appears twice")
            inner.begin_key(text, value)
        else:
            inner.values[inner.key] = value
            inner.key = _NO_KEY

    def _append(self, inner: _Open, value: Any, event: Any) -> None:  # noqa: ANN401
        assert inner.items is not None, "only lists have items"
        inner.items.append(value)
        if inner.is_watched:
            assert self._watch is not None, "it was watched for"
            self._count += 1
            root = self.root if isinstance(self.root, dict) else {}
            if problem := self._watch.problem(self._count, root):
                raise YamlProblem(f"line {_line(event)}: {problem}")

    def _open(self, event: Any, value: Any) -> None:  # noqa: ANN401
        if event.tag is not None:
            raise NotPlain
        if len(self._stack) >= DEPTH_MAX:
            raise YamlProblem(f"line {_line(event)}: nested more than {DEPTH_MAX} levels deep")
        matched = 0
        if not self._stack:
            self.root = value
        elif (inner := self._stack[-1]).items is not None:
            matched = inner.matched
            self._append(inner, value, event)
        elif inner.key is _NO_KEY:
            raise YamlProblem(f"line {_line(event)}: a key that is not a word")
        else:
            matched = self._matched(inner)
            inner.values[inner.key] = value
            inner.key = _NO_KEY
        opened = _Open(value, matched)
        opened.is_watched = matched == self._watched and opened.items is not None
        self._stack.append(opened)

    def _matched(self, inner: _Open) -> int:
        """Return how many keys of the watched path lead to the value of the waiting key."""
        done = inner.matched
        is_next = 0 <= done < len(self._path) and self._path[done] == inner.key
        return done + 1 if is_next else _ELSEWHERE

    def _plain(self, text: str) -> Any:  # noqa: ANN401 - what a YAML text may hold
        """Return the value of a scalar without quotes."""
        resolvers = _RESOLVERS.get(text[:1])
        if resolvers is None:
            return text
        if text not in self._known:
            self._known[text] = _resolved(text, resolvers)
        return self._known[text]


def _resolved(text: str, resolvers: Any) -> Any:  # noqa: ANN401
    for tag, pattern in resolvers:
        if pattern.match(text):
            if tag in _NEEDS_NODES:
                raise NotPlain
            return SafeConstructor().construct_document(yaml.ScalarNode(tag, text))
    return text


def _line(event: Any) -> int:  # noqa: ANN401
    line: int = event.start_mark.line
    return line + 1


def values_of_text(text: str, watch: Watch | None = None) -> Any:  # noqa: ANN401
    """Return the values of a text. Raises YamlProblem, NotPlain, yaml.YAMLError and ValueError."""
    builder = _Builder(watch)
    take = builder.take
    loader = LOADER(text)
    try:
        # yaml.parse also asks before each event whether there is one: an eighth of its time.
        for event in iter(loader.get_event, None):
            take(event)
    finally:
        loader.dispose()
    return builder.root
