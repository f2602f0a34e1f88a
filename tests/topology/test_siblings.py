"""Which GTIDs only two replicas of one source have."""

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.topology.transcript import read_scenarios
from tests.topology.transcript_words import gtids
from topology.facts import siblings as module
from topology.facts.siblings import held_by_siblings
from topology.readings.snapshot import ServerSnapshot

STORY = """# A star.
server a uuid=A executed=A:1-30{a}
server b uuid=B executed=A:1-30{b}
  from a retrieved=A:1-30{b_channel}
server c uuid=C executed=A:1-30{c}
  from a retrieved=A:1-30{c_channel}
{more}----
OK"""


def found(**parts: str) -> dict[tuple[str, str], GtidSet]:
    names = ("a", "b", "c", "b_channel", "c_channel", "more")
    text = STORY.format(**{name: parts.get(name, "") for name in names})
    return held_by_siblings(read_scenarios(text)[0].snapshot)


def test_what_both_replicas_have_and_their_source_has_not_is_found() -> None:
    assert found(b=",Z:1-5", c=",Z:3-9") == {("b", "c"): gtids("Z:3-5")}
    assert found(b=",B:1", c=",B:1") == {("b", "c"): gtids("B:1")}


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, "nothing is extra"),
        ({"b": ",Z:1-5", "c": ",Z:6"}, "each has others"),
        ({"a": ",Z:1-5", "b": ",Z:1-5", "c": ",Z:1-5"}, "the source has them"),
        ({"a": " owned=Z:1", "b": ",Z:1", "c": ",Z:1"}, "the source is committing them"),
        ({"b": ",A:31", "c": ",A:31"}, "the source's own newest"),
        (
            {
                "b": ",Z:1-5",
                "c": ",Z:1-5",
                "b_channel": "\n  from d/two retrieved=Z:1-5",
                "c_channel": "\n  from d/two retrieved=Z:1-5",
                "more": "server d uuid=D executed=A:1-30,Z:1-5\n",
            },
            "another source has them",
        ),
        (
            {"b": ",Z:1", "c": ",Z:1", "c_channel": "\n  from b/two retrieved=Z:1"},
            "a channel links the replicas: compared along it",
        ),
    ],
)
def test_what_came_by_a_channel_is_not_compared(parts: dict[str, str], why: str) -> None:
    assert found(**parts) == {}, why


def test_replicas_that_a_channel_links_are_not_compared_even_if_one_was_reset_since() -> None:
    """c receives from b as well; b has Z:1 in its first reading only."""
    linked = "\n  from b/two retrieved=Z:1"
    text = STORY.format(a="", b=",Z:1", c=",Z:1", b_channel="", c_channel=linked, more="")
    snapshot = read_scenarios(text)[0].snapshot
    later = tuple(
        replace(each, gtid_executed=gtids("A:1-30")) if each.name == "b" else each
        for each in snapshot.last
    )
    assert held_by_siblings(replace(snapshot, last=later)) == {}


def test_a_channel_that_has_never_connected_names_no_origin() -> None:
    text = STORY.format(a="", b=",Z:1", c=",Z:1", b_channel="", c_channel="", more="")
    snapshot = read_scenarios(text)[0].snapshot

    def with_new_channel(server: ServerSnapshot) -> ServerSnapshot:
        new = tuple(
            replace(
                channel, name="new", source_host="x", source_uuid=None, gtid_retrieved=GtidSet()
            )
            for channel in server.channels or ()
        )
        return replace(server, channels=(*(server.channels or ()), *new))

    both = replace(
        snapshot,
        first=tuple(map(with_new_channel, snapshot.first)),
        last=tuple(map(with_new_channel, snapshot.last)),
    )
    assert held_by_siblings(both) == {("b", "c"): gtids("Z:1")}


def test_many_are_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GTIDS_MAX", 3)
    assert found(b=",Z:1-9", c=",Z:1-9") == {("b", "c"): gtids("Z:1-3")}
