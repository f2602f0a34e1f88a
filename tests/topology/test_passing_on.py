"""C6: whose transactions do not reach a replica, because its source does not log them."""

from __future__ import annotations

from tests.snapshots import A, B, C, a_channel, a_cluster
from tests.topology.test_group_handshake import D, left, member, server
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot
from topology.rules.passing_on import updates_not_logged

SETTINGS = (("gtid_mode", "ON"), ("log_bin", "ON"))
UUIDS = {"a": A, "b": B, "c": C, "d": D}


def cut_off(*servers: ServerSnapshot) -> list[str]:
    """Return each C6 as `source>replica: the servers that do not get through`."""
    facts = gather_facts(
        a_cluster("cluster", *sorted(servers, key=lambda each: each.name)), Policy()
    )
    return [
        f"{each.source}>{each.replica}: {fact.value}"
        for each in updates_not_logged(facts)
        for fact in each.evidence
        if fact.fact == "receives from"
    ]


def of(name: str, *sources: str, logs: bool = True) -> ServerSnapshot:
    """Make a server with a channel from each of the sources."""
    channels = tuple(a_channel(each, UUIDS[each], name=each) for each in sources)
    settings = (*SETTINGS, ("log_replica_updates", "ON" if logs else "OFF"))
    return server(name, "a:1", channels=channels, settings=settings)


def test_what_comes_from_above_stays_at_a_server_that_does_not_log_it() -> None:
    assert cut_off(of("a"), of("b", "a", logs=False), of("c", "b")) == ["b>c: a"]
    assert not cut_off(of("a"), of("b", "a"), of("c", "b"))
    # It comes another way.
    assert not cut_off(of("a"), of("b", "a", logs=False), of("c", "a", "b"))


def test_what_a_source_gets_only_from_its_replica_does_not_have_to_come_back() -> None:
    assert not cut_off(of("a", "b"), of("b", "a", logs=False))
    assert not cut_off(of("a", "b", "c"), of("b", "a", logs=False), of("c"))
    assert cut_off(of("a", "b"), of("b", "a", "c", logs=False), of("c")) == ["b>a: c"]


def test_a_member_gets_from_its_group_what_no_channel_brings() -> None:
    """Outside the group, the replica of a member is also its source, and logs nothing."""
    back = (a_channel("d", D),)
    group = (member("a", "g:1"), member("b", "g:1", channels=back), member("c", "g:1"))
    assert not cut_off(*group, of("d", "b", logs=False))
    rest = (member("a", "g:1", sees="ac"), member("c", "g:1", sees="ac"))
    assert not cut_off(*rest, left("b", "g:1", channels=back), of("d", "b", logs=False))


def test_what_reaches_one_member_reaches_all() -> None:
    group = (
        member("a", "g:1", channels=(a_channel("d", D),)),
        member("b", "g:1", channels=(a_channel("c", C),), sees="ab"),
    )
    members = (group[0], group[1])
    assert cut_off(members[1], of("c", "d", logs=False), of("d")) == ["c>b: d"]
    assert not cut_off(*members, of("c", "d", logs=False), of("d"))
