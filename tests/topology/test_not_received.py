"""Which GTIDs a replica executed and did not receive in their place, and what explains them."""

import pytest

from gtid import GtidSet
from tests.topology.transcript import read_scenarios
from tests.topology.transcript_words import gtids
from topology.facts import not_received as module
from topology.facts.not_received import not_received

STORY = """# A pair.
server a uuid=A executed=A:1-30{source}
server b uuid=B executed=A:1-30,B:1-9{replica}
  from a {channel}
----
OK"""


def found(*, source: str = "", replica: str = "", channel: str) -> GtidSet:
    text = STORY.format(source=source, replica=replica, channel=channel)
    return not_received(read_scenarios(text)[0].snapshot)


def test_a_hole_of_what_both_have_is_found() -> None:
    assert found(channel="retrieved=A:1-19:21-30") == gtids("A:20")
    assert found(channel="retrieved=A:5-10:15-19:21-30") == gtids("A:11-14:20")


def test_what_was_executed_behind_all_that_was_received_is_found() -> None:
    assert found(channel="retrieved=A:1-28") == gtids("A:29-30")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"channel": "retrieved=A:1-30"}, "no hole"),
        ({"channel": "retrieved=A:21-30"}, "executed before the first interval"),
        ({"channel": "retrieved=B:1-25"}, "nothing of this origin was received since the start"),
        ({"channel": "retrieved=A:1-19:21-30 auto-position=off"}, "a file position decides"),
        ({"channel": "retrieved=A:1-30,B:1-3:5-9", "source": ",B:1-9"}, "the replica's own"),
        ({"channel": "retrieved=A:1-30:32-40"}, "not executed"),
        ({"channel": "retrieved=A:1-19:21-30\n  from z/other uuid=Z retrieved=A:20"}, "it came so"),
        ({"channel": "retrieved=A:1-19:21-30", "source": " purged=A:1-20"}, "purged on the source"),
        ({"channel": "retrieved=A:1-19:21-30", "replica": " purged=A:1-20"}, "purged here"),
    ],
)
def test_what_is_explained_otherwise_is_not_compared(more: dict[str, str], why: str) -> None:
    assert found(**more) == GtidSet(), why


def test_a_large_hole_is_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GTIDS_MAX", 3)
    assert found(channel="retrieved=A:1-10:21-30") == gtids("A:11-13")
