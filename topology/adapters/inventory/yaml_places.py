"""Reads YAML into plain values, and knows on which line each of them stands.

1. A small YAML on purpose: mappings, sequences and scalars. Anchors and aliases are refused (a few
   lines of them can unfold to gigabytes), and so is a key that appears twice (PyYAML keeps the last
   without a word).
2. Knows nothing of what the values mean.
"""

from collections.abc import Sequence
from typing import Any

import yaml

Path = Sequence[str | int]


class YamlProblem(Exception):
    """Text that is not YAML, or not the YAML we take. Shows the line, never its content."""


class YamlFile:
    """The values of one text, and the line of each."""

    def __init__(self, text: str) -> None:
        try:
            self._root = yaml.compose(text, Loader=yaml.SafeLoader)
            if self._root is not None:
                _refuse(self._root, seen=set())
            self.values: Any = yaml.safe_load(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"line {mark.line + 1}: " if mark else ""
            raise YamlProblem(f"{where}not YAML: {error.problem or 'malformed'}") from None
        except (yaml.YAMLError, ValueError):  # a character YAML forbids; a date that is none
            raise YamlProblem("not YAML: a character or value that YAML does not allow") from None

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest thing around it that exists."""
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


def _refuse(node: yaml.Node, *, seen: set[int]) -> None:
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise YamlProblem(f"line {line}: an anchor used again; write it out, or use defaults")
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
