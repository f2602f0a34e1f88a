"""Where rows of one server may have other names on another one."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from repair.adapters.rows_for_plan import read_rows
from repair.doubts.renamed_databases import renamed_between
from tests.repair.cases import a_finding
from tests.snapshots import A, B, C, a_channel, a_server
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot

RENAMES = ("Replicate_Rewrite_DB=(d,e)",)


D = UUID("dddddddd-0000-0000-0000-000000000000")


def chain(*renaming: str) -> Mapping[str, ServerSnapshot]:
    """Return a → b → c and a → d; those that are named rename databases."""

    def channel(of: str, source: str, uuid: UUID) -> ChannelSnapshot:
        return a_channel(source, uuid, filters=RENAMES if of in renaming else ())

    servers = (
        a_server("a", A, ""),
        a_server("b", B, "", channels=(channel("b", "a", A),)),
        a_server("c", C, "", channels=(channel("c", "b", B),)),
        a_server("d", D, "", channels=(channel("d", "a", A),)),
    )
    return {each.name: each for each in servers}


@pytest.mark.parametrize(
    ("renaming", "one", "other", "is_renamed"),
    [
        ("b", "a", "b", True),
        ("b", "b", "a", True),
        ("b", "a", "c", True),  # b passes on what it applied
        ("b", "b", "b", False),
        ("c", "a", "b", False),  # nothing is below c
        ("c", "a", "c", True),
        ("d", "a", "c", False),
        ("", "a", "b", False),
    ],
)
def test_a_filter_on_the_way_renames(
    renaming: str, one: str, other: str, *, is_renamed: bool
) -> None:
    why = renamed_between(one, other, chain(renaming))
    assert bool(why) is is_renamed
    assert not why or f"{renaming} applies changes in other databases" in why


def test_rows_of_different_content_are_not_looked_up_by_name() -> None:
    finding = a_finding("E4", "a:1")
    read = read_rows(finding, {}, None, seconds_max=1, readings=chain("b"))
    assert "Replicate_Rewrite_DB=(d,e)" in read.unread[0]
    assert (
        "no connection" in read_rows(finding, {}, None, seconds_max=1, readings=chain()).unread[0]
    )
