"""Reads YAML into plain values, with the line of each value.

1. It accepts only mappings, sequences and scalars. It refuses anchors and aliases, a few lines of
   which can expand to gigabytes. It also refuses a key that appears twice, of which PyYAML silently
   keeps the last.
2. It is independent of what the values mean.
"""

from collections.abc import Sequence
from typing import Any, Final

import yaml
from yaml.constructor import SafeConstructor

Path = Sequence[str | int]
DEPTH_MAX: Final = 100  # a fleet file has five levels
# libyaml, where PyYAML was built with it: ten times as fast for a fleet of 10,000 pairs.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlProblem(Exception):
    """Text that is not YAML, or not the accepted subset. Shows the line, never its content."""


class YamlFile:
    """The values of one text, and the line of each."""

    def __init__(self, text: str) -> None:
        try:
            _refuse_depth(text)
            self._root = yaml.compose(text, Loader=_LOADER)
            if self._root is not None:
                _refuse(self._root, seen=set())
            self.values: Any = _values_of(self._root)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"line {mark.line + 1}: " if mark else ""
            begun = error.context_mark
            since = f" ({error.context}, begun in line {begun.line + 1})" if begun else ""
            problem = error.problem or "malformed"
            raise YamlProblem(f"{where}not YAML: {problem}{since}") from None
        except (yaml.YAMLError, ValueError):  # a character that YAML forbids, or an invalid date
            raise YamlProblem("not YAML: a character or value that YAML does not allow") from None

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the closest enclosing value that exists."""
        node, line = self._root, 1
        for step in path:
            found = _inside(node, step)
            if found is None:
                break
            key, node = found
            line = key.start_mark.line + 1
        return line


def _inside(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _values_of(root: yaml.Node | None) -> Any:  # noqa: ANN401 - what a YAML text may hold
    return None if root is None else SafeConstructor().construct_document(root)


def _refuse_depth(text: str) -> None:
    """Refuse a text nested deeper than DEPTH_MAX: composing it is recursive, also in libyaml."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            assert event.start_mark is not None, "events of a parsed text have line numbers"
            line = event.start_mark.line + 1
            raise YamlProblem(f"line {line}: nested more than {DEPTH_MAX} levels deep")


def _refuse(node: yaml.Node, *, seen: set[int]) -> None:
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise YamlProblem(f"line {line}: an anchor is reused; write out its value, or use defaults")
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse(item, seen=seen)
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise YamlProblem(f"line {key.start_mark.line + 1}: a key that is not a word")
            if key.value in keys:
                raise YamlProblem(f"line {key.start_mark.line + 1}: the key appears twice")
            keys.add(key.value)
            _refuse(value, seen=seen)
