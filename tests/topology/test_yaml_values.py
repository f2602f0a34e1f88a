"""Values read from events are those that PyYAML's own constructor makes of its nodes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from topology.adapters.inventory.yaml_places import YamlFile
from topology.adapters.inventory.yaml_values import (
    NotPlain,
    Watch,
    YamlProblem,
    values_of_text,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.dates(),
    TEXTS,
    st.sampled_from(
        ["yes", "0x1f", "1_000", "1:30", "~", "2026-01-02", "=", "<<", "1e3", ".5", ""]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.sampled_from([None, '"', "|"]))
def test_what_pyyaml_writes_is_read_as_pyyaml_reads_it(
    value: Any, flow: bool, style: str | None
) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, default_style=style, allow_unicode=True)
    expected = yaml.safe_load(text)
    assert YamlFile(text).values == expected
    assert repr(YamlFile(text).values) == repr(expected)  # 1 and True are equal, and not the same


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: [x, 'y', \"z\", 0o17, 017, +1, -0.5, 1.e+3, .inf, on, Off, null, Null, '']",
        "yes: 1\n1: 2\n'1x': 3\n2026-01-01: 4",
        "- |\n  two\n  lines\n- >-\n  one\n  line\n- plain\n  continued",
        "a: 2026-01-02 03:04:05.6 +01:00",
        "{a: {b: [{}, []]}, c: }",
        "",
        "---\n",
        "just a text",
        "- !!str 5\n- !!int '5'\n- 6",
        "a: {<<: {x: 1}, y: 2}",
        "%YAML 1.1\n---\na: 1\n...\n",
    ],
)
def test_every_form_of_a_value_is_read_as_pyyaml_reads_it(text: str) -> None:
    assert repr(YamlFile(text).values) == repr(yaml.safe_load(text))


@pytest.mark.parametrize("text", ["!!str 5", "a: {<<: {x: 1}}", "=", "a: 1\n---\nb: 2"])
def test_what_needs_nodes_is_left_to_them(text: str) -> None:
    with pytest.raises(NotPlain):
        values_of_text(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key appears twice"),
        ("1: a\n'1': b", "line 2: the key appears twice"),
        ("'null': a\nnull: b", "line 2: the key appears twice"),
        ("{x: {2: a, 3: b, '2': c}}", "line 1: the key appears twice"),
        ("a: &x {b: 1}\nc:\n  d: *x", "line 3: an anchor is reused"),
        ("{[1]: 2}", "line 1: a key that is not a word"),
        ("? {a: 1}\n: 2", "line 1: a key that is not a word"),
        ("a: 1\n---\nb: 2", "line 2: not YAML: but found another document"),
        ("a: !!python/name:os.system x", "line 1: not YAML"),
        ("a: {<<: *x, b: 1}", "line 1: "),
        ("a: !!map {b: 1, b: 2}", "line 1: the key appears twice"),
        ("\n".join(" " * depth + "a:" for depth in range(102)), "line 101: nested more than 100"),
        ("!!map " + "{a: " * 101 + "}" * 101, "line 1: nested more than 100"),
    ],
)
def test_what_is_refused_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(YamlProblem) as raised:
        YamlFile(text)
    assert problem in str(raised.value)


def test_a_watch_ends_the_reading() -> None:
    seen: list[tuple[int, dict[Any, Any]]] = []

    def stop_at_three(count: int, values: dict[Any, Any]) -> str | None:
        seen.append((count, dict(values)))
        return "enough" if count == 3 else None

    text = "limit: 2\nc:\n  - s: [1, 2]\n    t: [1]\n  - s:\n      - {x: 1}\n      - 4\n"
    with pytest.raises(YamlProblem, match="line 6: enough"):
        YamlFile(text + "[[[", Watch(("c", "s"), stop_at_three))
    assert [count for count, _ in seen] == [1, 2, 3]
    assert seen[0][1]["limit"] == 2
    assert YamlFile(text, Watch(("c",), lambda *_: None)).values == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("c: {s: [1, 2]}", 2),
        ("c: [[{s: [1]}], {s: [[2], 3]}]", 4),  # the list in the list counts, and its item
        ("c: {s: {s: [1]}, t: [1]}", 0),
        ("s: [1]\nc: [1]", 0),
        ("x: {c: {s: [1]}}", 0),
        ("[1, 2]", 0),
    ],
)
def test_a_watch_counts_the_items_at_its_path_only(text: str, counted: int) -> None:
    counts: list[int] = []
    YamlFile(text, Watch(("c", "s"), lambda count, _: counts.append(count)))
    assert len(counts) == counted


def test_places_are_lines_and_columns() -> None:
    file = YamlFile("a: {b: 1,\n    cc: [x, y]}\n")
    assert file.place(("a", "b")) == (1, 5)
    assert file.place(("a", "cc", 1)) == (2, 13)
    assert file.place(("a", "cc", 7, "deeper")) == (2, 5)
    assert file.line(("none",)) == 1
