"""Manual instructions beside another fault: they start nothing that is held, and fill no hole."""

from dataclasses import replace

import pytest

from repair.model.replication_model import Model, ModelChannel
from repair.strategies.done_by_hand import by_hand
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_finding
from tests.snapshots import NOON
from topology.catalogue.findings import Evidence, Finding

HELD = channel("a", runs=False)
RECEIVING = replace(HELD, is_connected=True)


def servers_with(*channels: ModelChannel, executed: str = "a:1-3") -> Model:
    return model(server("a", "a:1-9"), server("b", executed, *channels))


def about(code: str, *facts: str) -> Finding:
    evidence = tuple(Evidence(fact, "1", "b", NOON) for fact in (facts or ("as read",)))
    return replace(a_finding(code, "a:5"), evidence=evidence)


SKIPS_ONE = about("C15", "sql_replica_skip_counter")


@pytest.mark.parametrize(
    ("finding", "change"),
    [
        (about("C7"), "`SET GLOBAL replica_preserve_commit_order = ON`"),
        (SKIPS_ONE, "`SET GLOBAL sql_replica_skip_counter = 0`"),
    ],
)
def test_an_applier_that_is_held_is_not_started_with_a_setting(
    finding: Finding, change: str
) -> None:
    """A7: it may be stopped before a DROP TABLE."""
    stop, start = "`STOP REPLICA SQL_THREAD`", "`START REPLICA SQL_THREAD`"
    runs = by_hand("configure", finding, servers_with(channel("a")))
    assert f"{stop}, {change}, {start}" in runs
    assert "stopped now" not in runs
    text = by_hand("configure", finding, servers_with(HELD))
    assert f"on b run {change}" in text
    assert ". This does not start the applier of channel (default)" in text
    assert (stop in text, start in text) == (False, False)
    both = servers_with(replace(HELD, name="held"), channel("a", name="runs"))
    text = by_hand("configure", finding, both)
    assert f"{stop}, {change}, `START REPLICA SQL_THREAD FOR CHANNEL 'runs'`" in text
    assert start not in text
    assert "the applier of channel held, stopped now (see A7)" in text
    # One that stopped at an error is tried again, and stops again.
    stuck = servers_with(replace(HELD, is_stuck=True), channel("a", name="runs"))
    assert "stopped now" not in by_hand("configure", finding, stuck)


@pytest.mark.parametrize("finding", [about("C2"), about("A7", "IGNORE_SERVER_IDS")])
def test_a_channel_that_is_held_only_receives_again(finding: Finding) -> None:
    runs = by_hand("configure", finding, servers_with(channel("a")))
    assert "`STOP REPLICA`" in runs
    assert "`START REPLICA`" in runs
    text = by_hand("configure", finding, servers_with(RECEIVING))
    assert "`START REPLICA IO_THREAD`" in text
    assert ". This does not start the applier" in text
    assert "`START REPLICA`" not in text
    text = by_hand("configure", finding, servers_with(HELD))
    assert "START REPLICA" not in text
    held_beside = servers_with(channel("a"), replace(HELD, name="x"))
    assert "`START REPLICA`" in by_hand("configure", finding, held_beside)


RESTARTED = [
    (about("C15", "replica_skip_errors"), "b"),
    (about("A9"), "b"),
    (about("C10"), "b"),
    *((about(code), "a") for code in ("C6", "H3", "H4", "P1", "A4")),
    (about("C11", "binlog_do_db"), "a"),
]


@pytest.mark.parametrize(("finding", "name"), RESTARTED)
def test_a_restart_is_announced_with_what_it_starts(finding: Finding, name: str) -> None:
    waiting = channel("c", runs=False, name="from_c")
    held = model(
        server("a", "a:1-9", *((waiting,) if name == "a" else ())),
        server("b", "a:1-9", *((waiting,) if name == "b" else ())),
        server("c", ""),
    )
    text = by_hand("configure", finding, held)
    said = f"a restart also starts the applier of channel from_c of {name}, stopped now (see A7)"
    assert said in text
    assert text.index(said) < text.index("restart it"), "before it is done"
    assert f"set skip_replica_start = ON in the configuration file of {name}. Then" in text
    free = model(server("a", "a:1-9"), server("b", "a:1-9"))
    assert "a restart also" not in by_hand("configure", finding, free)


BY_PLACE = channel("a", auto=False)


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (servers_with(BY_PLACE, executed="a:1-9"), "switch b to auto-position (C3)"),
        (servers_with(BY_PLACE, executed="a:1-5"), "switch b to"),  # it lags
        # What waits in its relay log is applied before the switch.
        (servers_with(replace(BY_PLACE, retrieved=gtids("a:4")), executed="a:1-3 a:5"), "switch"),
        (
            servers_with(replace(BY_PLACE, retrieved=gtids("a:4"), passed=gtids("a:4"))).replace(
                server("b", "a:1-3 a:5", replace(BY_PLACE, passed=gtids("a:4")))
            ),
            f"do NOT switch b to auto-position yet: a would then send {gtids('a:4')}, which",
        ),
        (
            servers_with(replace(BY_PLACE, bypassed=gtids("a:4")), executed="a:1-3 a:5-9"),
            f"do NOT switch b to auto-position yet: a would then send {gtids('a:4')}, which",
        ),
        (  # received, and not applied yet: it comes first
            servers_with(replace(BY_PLACE, retrieved=gtids("a:5-9")), executed="a:1-3"),
            f"do NOT switch b to auto-position yet: a would then send {gtids('a:4')}, which",
        ),
        (  # 5.6 shows nothing that was received
            servers_with(replace(BY_PLACE, bypassed=gtids("a:4")), executed="a:1-3"),
            f"do NOT switch b to auto-position yet: a would then send {gtids('a:4')}, which",
        ),
        (
            model(server("a", "a:1-9", purged="a:1-5"), server("b", "a:1-3 a:6-9", BY_PLACE)),
            f"do NOT switch b to auto-position yet: a has purged {gtids('a:4-5')}, and would",
        ),
        (
            model(server("b", "a:1-3", replace(BY_PLACE, source=None))),
            "do NOT switch b to auto-position yet: gtid-audit did not read its source",
        ),
    ],
)
def test_a_channel_with_a_hole_is_not_switched_by_a_remark(servers: Model, words: str) -> None:
    """C10 beside H1: the switch brought an older row over a newer one, and the audit was OK."""
    text = by_hand("configure", about("C10"), servers)
    assert text.startswith(words)
    assert ("Repair that first. Then switch b" in text) is words.startswith("do NOT")


def test_a_donor_does_not_fill_a_hole_over_newer_rows() -> None:
    holed = model(
        server("a", "a:1-9", purged="a:1-6"),
        server("b", "a:1-3 a:6-9", channel("a")),
        server("c", "a:1-9", channel("a")),
    )
    hole = replace(a_finding("H3", "a:4-5"), replica="b")
    text = by_hand("donor_refetch", hole, holed)
    said = f"b would apply {gtids('a:4-5')} after later transactions, and this plan has not"
    assert said in text
    assert text.index(said) < text.index("`STOP REPLICA`")
    assert "and no later transaction changed these rows, on b run" in text
    behind = holed.replace(server("b", "a:1-3", channel("a")))
    assert "after later transactions" not in by_hand("donor_refetch", hole, behind)


def test_what_only_a_relay_log_has_is_applied_before_a_donor_sends_the_rest() -> None:
    """It said that no server has all, although the applier only had to be started."""
    received = replace(HELD, retrieved=gtids("a:4-5"))
    servers = model(
        server("a", "a:1-9", purged="a:1-6"),
        server("b", "a:1-3", received),
        server("c", "a:1-9", purged="a:1-5"),
    )
    missing = a_finding("P1", "a:6")
    text = by_hand("donor_refetch", missing, servers)
    assert text.startswith(f"let b apply {gtids('a:4-5')} first (start or repair its applier")
    assert text.index("let b apply") < text.index("`STOP REPLICA`")
    assert "(host of c)" in text
    passed = servers.replace(server("b", "a:1-3", replace(received, passed=gtids("a:4"))))
    assert by_hand("donor_refetch", missing, passed).startswith("no server of this snapshot")
    applied = servers.replace(server("b", "a:1-5", received))
    assert by_hand("donor_refetch", missing, applied).startswith("on b run `STOP REPLICA`")


def test_a_server_with_two_sources_is_not_replaced_by_a_copy_of_one() -> None:
    """It was told to redo there what another source had sent, which stopped a third server."""
    channels = (channel("a"), channel("d", name="other"))
    two = model(
        server("a", "a:1-9", purged="a:1-5"),
        server("d", "d:1-3"),
        server("b", "a:1-3 d:1-3", *channels),
    )
    missing = a_finding("P1", "a:4-5")
    text = by_hand("reclone", missing, two)
    assert text.startswith("do NOT replace the data of b by a copy of a: it also has")
    assert f"{gtids('d:1-3')} of its other sources" in text
    assert "--redo" not in text
    sibling = two.replace(server("c", "a:1-9 d:1-3", *channels))
    text = by_hand("reclone", missing, sibling)
    assert text.startswith("copy c, not a: b also has the transactions of other sources")
    assert "only b has" not in text
    assert "Nothing is lost" in text
    # What only b has is still named.
    own = sibling.replace(server("b", "a:1-3 d:1-3 b:1", *channels))
    assert f"only b has {gtids('b:1')}" in by_hand("reclone", missing, own)
