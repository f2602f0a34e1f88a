"""What two GTID sets that one error text quotes amount to."""

from gtid import GtidSet
from topology.catalogue.explanations import explain
from topology.catalogue.quoted_sets import compared_sets, quoted_sets

A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
PURGED = (
    "Cannot replicate because the source purged required binary logs. The GTID set sent by the"
    " replica is '{sent}', and the missing transactions are '{missing}'"
)
MEMBER = (
    "This member has more executed transactions than those present in the group. Local"
    " transactions: {member} > Group transactions: {group}"
)


def computed(text: str) -> dict[str, str]:
    return {what: str(gtids) for what, gtids in explain(text).computed_sets}


def test_what_a_replica_needs_and_where_it_stands() -> None:
    text = PURGED.format(sent=f"{A}:1-80, {B}:1-7", missing=f"{A}:81-90")
    assert computed(text) == {
        "missing on the replica": f"{A}:81-90",
        "the replica has of the same UUIDs": f"{A}:1-80",
    }
    advice = explain(text).advice[-1]
    assert advice.endswith(f"gtid-audit handshake --offered '{A}:1-80,{B}:1-7' DSN DSN.")


def test_a_replica_that_has_none_of_them() -> None:
    text = PURGED.format(sent="", missing=f"{A}:1-90")
    assert computed(text) == {
        "missing on the replica": f"{A}:1-90",
        "the replica has of the same UUIDs": "",
    }
    assert not any("--offered" in each for each in explain(text).advice)


def test_what_only_a_member_has() -> None:
    text = MEMBER.format(member=f"{A}:1-5, {B}:1-3", group=f"{A}:1-9")
    assert computed(text) == {
        "only the member has": f"{B}:1-3",
        "missing on the member": f"{A}:6-9",
    }
    assert explain(text).advice[-1].endswith(f"gtid-audit binlog show '{B}:1-3' DSN_OF_MEMBER.")
    followed = f"{text} The member will now exit the group."
    assert computed(followed) == computed(text)


def test_what_a_change_of_gtid_purged_added_and_removed() -> None:
    text = f"@@GLOBAL.GTID_PURGED was changed from '{A}:1-5' to '{A}:3-9'."
    assert computed(text) == {"added": f"{A}:6-9", "removed": f"{A}:1-2"}


def test_nothing_is_computed_from_a_set_that_was_cut_off() -> None:
    cut = PURGED.format(sent="aaaaaaaa-", missing=f"{A}:81-90")
    assert explain(cut).gtid_sets == (("missing transactions", GtidSet.parse(f"{A}:81-90")),)
    assert computed(cut) == {}
    assert computed(MEMBER.format(member=f"{A}:1-5", group="aaaa")) == {}
    assert compared_sets(quoted_sets("no sets")) == ()
