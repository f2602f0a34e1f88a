"""What third servers can still bring to two servers whose definitions are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from gtid import GtidSet
from gtid_audit.tasks.ddl_of_others import executed_above, on_the_way_from, servers_above
from gtid_audit.tasks.definition_servers import DefinitionServer
from tests.definitions import a_ddl
from tests.snapshots import A, B, C, a_channel, read_server
from topology.definitions.compared_pairs import ComparedPair
from topology.definitions.ddl_searches import DdlSearch
from topology.definitions.schema_objects import ServerObjects, SetsAround
from topology.definitions.visibility import Visibility
from topology.readings.group_view import GROUP_APPLIER, GroupMember, GroupSnapshot
from topology.readings.target import ServerTarget

D = UUID("dddddddd-0000-0000-0000-000000000000")


def server(name: str, uuid: UUID, executed: str = "", **facts: Any) -> DefinitionServer:
    state = read_server(name, uuid, executed, **facts)
    sets = SetsAround(state.gtid_executed, state.gtid_executed)
    objects = ServerObjects(name, Visibility(), sets)
    target = ServerTarget(name, f"{name}.example", 3306, "auditor")
    return DefinitionServer(target, cast("Any", SimpleNamespace()), state, objects)


def above(*servers: DefinitionServer) -> tuple[list[str], tuple[str, ...]]:
    found = servers_above(ComparedPair("b", "c"), servers)
    return [each.name for each in found.read], found.unread


def test_servers_above_are_found_over_any_hops() -> None:
    a, d = server("a", A), server("d", D)
    b = server("b", B, channels=(a_channel("a", A),))
    c = server("c", C, channels=(a_channel("b", B), a_channel("d", None, name="two")))
    assert above(a, b, c, d) == (["a", "d"], ())
    assert above(b, c) == ([], ("a.example:3306", "d.example:3306"))
    assert above(server("a", A, channels=(a_channel("x", D),)), b, c, d)[0] == ["a", "d"]
    unread = server("a", A)
    unread.objects = None
    assert above(unread, b, c, d) == (["d"], ("a.example:3306",))
    hidden = server("c", C, channels=None)
    assert above(b, hidden) == ([], ("a server whose channels were not read", "a.example:3306"))


def test_what_servers_above_a_source_have_executed_may_come_to_it() -> None:
    """Not what only its replica has, or only a server above the replica."""
    pair = ComparedPair("b", "c")
    a, d = server("a", A, f"{A}:1,{C}:1"), server("d", D, f"{D}:1")
    b = server("b", B, f"{B}:1", channels=(a_channel("a", A),))
    c = server("c", C, f"{C}:1-2", channels=(a_channel("b", B), a_channel("d", D, name="two")))
    assert str(executed_above(pair, (a, b, c, d))) == f"{A}:1,{C}:1"
    ring = server("a", A, f"{A}:1,{C}:1", channels=(a_channel("c", C),))
    assert str(executed_above(pair, (ring, b, c, d))) == f"{A}:1,{C}:1"
    assert not executed_above(pair, (server("b", B), c, d))


def test_members_of_a_group_deliver_to_each_other() -> None:
    members = tuple(
        GroupMember(uuid, name, 3306, "ONLINE", "SECONDARY")
        for name, uuid in (("a", A), ("b", B), ("d", D))
    )
    group = GroupSnapshot("g", "ONLINE", "SECONDARY", GtidSet(), members)
    of_group = (a_channel("", None, name=GROUP_APPLIER),)
    b = server("b", B, channels=of_group, group=group)
    c = server("c", C, channels=(a_channel("b", B),))
    assert above(server("a", A, group=group), b, c) == (["a"], ("d:3306",))


def test_what_neither_of_the_two_has_is_searched_where_it_is() -> None:
    """The rest is in relay logs: it may be DDL, too."""
    a = server("a", A, f"{A}:1-5")
    received = GtidSet.parse(f"{A}:4-7")
    b = server("b", B, f"{A}:1-3", channels=(a_channel("a", A, gtid_retrieved=received),))
    c = server("c", C, f"{A}:1-2", channels=(a_channel("b", B),))
    asked = []

    def search(one: DefinitionServer, wanted: GtidSet) -> DdlSearch:
        asked.append((one.name, str(wanted)))
        return DdlSearch(one.name, wanted, (a_ddl(f"{A}:5"),))

    others = servers_above(ComparedPair("b", "c"), (a, b, c))
    known = GtidSet.parse(f"{A}:1-3")  # executed by both, or on its way from b to c
    found = dict(on_the_way_from(others, (b, c), known, search))
    assert asked == [("a", f"{A}:4-5")]
    assert [str(each.gtid) for each in found["a"].ddl] == [f"{A}:5"]
    assert found["a"].is_complete
    assert (found["relay logs"].gtids, found["relay logs"].is_complete) == (
        GtidSet.parse(f"{A}:6-7"),
        False,
    )
    assert on_the_way_from(others, (b, c), GtidSet.parse(f"{A}:1-7"), search) == ()
    assert len(asked) == 1
