"""What `trace` does not follow: the channels of a server that left its replication group."""

import pytest

from gtid import GtidSet
from tests.snapshots import A, a_server
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import ServerSnapshot, UnreadReason
from topology.tracing.stopped_threads import channels_not_followed

GROUP = "aaaaaaaa-0000-0000-0000-00000000000a"
OF_GROUP = (("group_replication_group_name", GROUP),)


def member(state: str) -> ServerSnapshot:
    return a_server("a", A, "", group=GroupSnapshot(GROUP, state, "", GtidSet()))


@pytest.mark.parametrize(
    ("server", "is_followed"),
    [
        (a_server("a", A, ""), True),
        (member("ONLINE"), True),  # a member whose applier fails leaves
        (member("RECOVERING"), False),
        (member("ERROR"), False),
        (a_server("a", A, "", settings=OF_GROUP), False),
    ],
)
def test_a_server_outside_its_group_is_not_called_free_of_errors(
    server: ServerSnapshot, *, is_followed: bool
) -> None:
    found = channels_not_followed(server)
    assert (found == ()) is is_followed
    assert all(each.reason is UnreadReason.UNSUPPORTED for each in found)
