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

    __slots__ = ("is_watched", "items", "key", "keys", "path", "values")

    def __init__(self, path: tuple[Any, ...], items: list[Any] | None) -> None:
        self.path = path  # the keys that lead here
        self.items = items  # None: a mapping
        self.values: Mapping = {}
        self.keys: set[str] = set()  # the texts of the keys so far
        self.key: Any = _NO_KEY
        self.is_watched = False


_NO_KEY: Final = object()


class _Builder:
    """The state of one pass."""

    def __init__(self, watch: Watch | None) -> None:
        self.root: Any = None
        self._watch = watch
        self._count = 0
        self._stack: list[_Open] = []
        self._known: dict[str, Any] = {}
        self._documents = 0

    def take(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's events, which have no common type
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent:
            self._open(event, None)
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
        if inner.items is None and inner.key is _NO_KEY:
            if text in inner.keys:
                raise YamlProblem(f"line {_line(event)}: the key appears twice")
            inner.keys.add(text)
            inner.key = value
            return
        self._put(inner, value, event)

    def _put(self, inner: _Open, value: Any, event: Any) -> None:  # noqa: ANN401
        if inner.items is None:
            inner.values[inner.key] = value
            inner.key = _NO_KEY
            return
        inner.items.append(value)
        if inner.is_watched:
            assert self._watch is not None, "it was watched for"
            self._count += 1
            root = self.root if isinstance(self.root, dict) else {}
            if problem := self._watch.problem(self._count, root):
                raise YamlProblem(f"line {_line(event)}: {problem}")

    def _open(self, event: Any, items: list[Any] | None) -> None:  # noqa: ANN401
        if event.tag is not None:
            raise NotPlain
        if len(self._stack) >= DEPTH_MAX:
            raise YamlProblem(f"line {_line(event)}: nested more than {DEPTH_MAX} levels deep")
        path: tuple[Any, ...] = ()
        if self._stack:
            inner = self._stack[-1]
            path = inner.path
            if inner.items is None:
                if inner.key is _NO_KEY:
                    raise YamlProblem(f"line {_line(event)}: a key that is not a word")
                path = (*path, inner.key)
        opened = _Open(path, items)
        if items is not None and self._watch is not None:
            opened.is_watched = path == self._watch.path
        value = opened.values if items is None else items
        if self._stack:
            self._put(self._stack[-1], value, event)
        else:
            self.root = value
        self._stack.append(opened)

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
    for event in yaml.parse(text, Loader=LOADER):
        builder.take(event)
    return builder.root
