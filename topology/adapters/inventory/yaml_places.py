"""The values of a YAML text, and the line and column of each.

1. yaml_values.py reads the values in one pass. Places are found only for problems: the text is then
   read a second time, into PyYAML's nodes, which have them.
2. A text with tags or merge keys is read through nodes at once; the same is refused in it.
3. It is independent of what the values mean.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from topology.adapters.inventory.yaml_values import (
    DEPTH_MAX,
    LOADER,
    NotPlain,
    Watch,
    YamlProblem,
    values_of_text,
)

Path = Sequence[str | int]


class YamlFile:
    """The values of one text, and the place of each. Raises YamlProblem."""

    def __init__(self, text: str, watch: Watch | None = None) -> None:
        self._text = text
        try:
            self.values: Any = self._read(watch)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"line {mark.line + 1}: " if mark else ""
            begun = error.context_mark
            since = f" ({error.context}, begun in line {begun.line + 1})" if begun else ""
            problem = error.problem or "malformed"
            raise YamlProblem(f"{where}not YAML: {problem}{since}") from None
        except (yaml.YAMLError, ValueError):  # a character that YAML forbids, or an invalid date
            raise YamlProblem("not YAML: a character or value that YAML does not allow") from None

    def _read(self, watch: Watch | None) -> Any:  # noqa: ANN401 - what a YAML text may hold
        try:
            return values_of_text(self._text, watch)
        except NotPlain:
            _refuse_depth(self._text)
            if self._root is None:
                return None
            _refuse(self._root, seen=set())
            return SafeConstructor().construct_document(self._root)

    @cached_property
    def _root(self) -> yaml.Node | None:
        root: yaml.Node | None = yaml.compose(self._text, Loader=LOADER)
        return root

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the closest enclosing value that exists."""
        return self.place(path)[0]

    def place(self, path: Path) -> tuple[int, int]:
        """Return line and column of a value, or of the closest enclosing value that exists."""
        node, place = self._root, (1, 1)
        for step in path:
            found = _inside(node, step)
            if found is None:
                break
            key, node = found
            place = (key.start_mark.line + 1, key.start_mark.column + 1)
        return place


def _inside(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _refuse_depth(text: str) -> None:
    """Refuse a text nested deeper than DEPTH_MAX: composing it is recursive, also in libyaml."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
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
