"""A channel at whose address another server may be is not started unasked."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.doubts.doubtful_sources import unless_doubtful
from repair.model.actions import AutoPositionOn, InjectEmpty, MovePast, StartChannel
from repair.model.strategy_case import Proposal, Refusal
from repair.model.unnumbered import unread_without_gtid
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.cases import a_case, a_finding, reason
from tests.repair.test_channel_strategies import event
from topology.catalogue.findings import Finding

FOUND = a_finding("A7", "a:3")
DOUBTFUL = replace(channel("a", runs=False), doubt="another server may be there")
SERVERS = model(server("a", "a:1-3"), server("b", "a:1-2", DOUBTFUL))
START = Proposal((StartChannel("b", ""),))


def short(text: str) -> str:
    for letter, uuid in UUIDS.items():
        text = text.replace(str(uuid), letter)
    return text


@pytest.mark.parametrize(
    "proposal", [START, Proposal((AutoPositionOn("b", "", filled=GtidSet()),))]
)
def test_a_start_in_doubt_is_refused_unless_it_is_selected(proposal: Proposal) -> None:
    unasked = replace(a_case(SERVERS, FOUND), is_chosen=False)
    refusal = unless_doubtful(unasked, proposal)
    assert reason(refusal).startswith("another server may be there, or choose with --strategy A7=")
    selected = unless_doubtful(replace(unasked, is_chosen=True), proposal)
    warning = "it may stop the applier or overwrite rows: another server may be there"
    assert selected == replace(proposal, warnings=(warning,))


@pytest.mark.parametrize(
    ("source", "replica", "finding", "words"),
    [
        # A session on a, or above it, used the UUID of b, or of c below it.
        ("a:1-3 b:1", "a:1-2", FOUND, "a has b:1, with the server_uuid of b, which does not"),
        ("a:1-3 c:7", "a:1-2", FOUND, "a has c:7, with the server_uuid of c, which does not"),
        ("a:1-3 b:1", "a:1-2 b:1", FOUND, ""),
        ("a:1-3", "a:1-2", FOUND, ""),
        # The strategy of this finding answers it before it starts the channel.
        ("a:1-3 b:1", "a:1-2", a_finding("E1", "b:1"), ""),
        ("a:1-3 b:1-2", "a:1-2", a_finding("E1", "b:1"), "a has b:2, with the server_uuid of b"),
    ],
)
@pytest.mark.parametrize(
    "action",
    [StartChannel("b", ""), AutoPositionOn("b", "", filled=GtidSet()), MovePast("b", "", event())],
)
def test_a_gtid_of_its_own_uuid_that_it_does_not_have_is_doubted(
    action: Any, source: str, replica: str, finding: Finding, words: str
) -> None:
    servers = model(
        server("a", source),
        server("b", replica, channel("a", runs=False)),
        server("c", "a:1-2", channel("b")),
    )
    unasked = replace(a_case(servers, finding), is_chosen=False)
    outcome = unless_doubtful(unasked, Proposal((action,)))
    why = outcome.reason if isinstance(outcome, Refusal) else ""
    assert words in short(why)
    assert bool(why) is bool(words)
    selected = unless_doubtful(replace(unasked, is_chosen=True), Proposal((action,)))
    assert isinstance(selected, Proposal)
    assert bool(selected.warnings) is bool(words)


def test_an_invariant_refuses_a_selected_start_that_certainly_fails() -> None:
    fails = replace(DOUBTFUL, fails="its source would refuse it")
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", fails))
    selected = replace(a_case(servers, FOUND), is_chosen=True)
    assert unless_doubtful(selected, START) is START


def test_a_switch_to_sets_is_refused_if_the_log_was_not_read() -> None:
    """It may have transactions without a GTID, which are never sent after the switch."""
    unread = replace(channel("a", runs=False), without_gtid_unread="900 MiB of its log follow")
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", unread))
    unasked = replace(a_case(servers, FOUND), is_chosen=False)
    switch = Proposal((AutoPositionOn("b", "", filled=GtidSet()),))
    refusal = reason(unless_doubtful(unasked, switch))
    assert "is not known (900 MiB of its log follow): with auto-position these are never" in refusal
    assert unless_doubtful(replace(unasked, is_chosen=True), switch) is switch
    assert unless_doubtful(unasked, START) is START


def test_a_place_that_may_have_been_applied_is_left_to_the_operator() -> None:
    maybe = replace(channel("a", runs=False), without_gtid_maybe_at="binlog.000003:198")
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", maybe))
    unasked = replace(a_case(servers, FOUND), is_chosen=False)
    switch = Proposal((AutoPositionOn("b", "", filled=GtidSet()),))
    for proposal in (START, switch):
        assert "without a GTID at binlog.000003:198" in reason(unless_doubtful(unasked, proposal))
        assert unless_doubtful(replace(unasked, is_chosen=True), proposal) is proposal
    by_position = replace(maybe, auto_position=False)
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", by_position))
    assert unless_doubtful(replace(unasked, model=servers), START) is START


@pytest.mark.parametrize("auto", [True, False])
def test_past_an_event_a_channel_goes_on_by_file_position(*, auto: bool) -> None:
    """It requests nothing by sets then, whatever it used before: nothing is left out."""
    maybe = replace(
        channel("a", runs=False, auto=auto),
        without_gtid_maybe_at="binlog.000003:198",
        without_gtid_unread="900 MiB of its log follow",
    )
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", maybe))
    unasked = replace(a_case(servers, FOUND), is_chosen=False)
    past = Proposal((MovePast("b", "", event()),))
    assert unless_doubtful(unasked, past) is past
    in_doubt = replace(unasked, model=SERVERS)
    assert "another server may be there" in reason(unless_doubtful(in_doubt, past))


def test_a_switch_below_a_log_that_was_read_to_its_end_passes() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", replace(DOUBTFUL, doubt="")))
    unasked = replace(a_case(servers, FOUND), is_chosen=False)
    switch = Proposal((AutoPositionOn("b", "", filled=GtidSet()),))
    assert unless_doubtful(unasked, switch) is switch
    assert unread_without_gtid("b", channel("a")) == "", "a start has nothing to warn of either"


def test_what_starts_no_channel_in_doubt_passes() -> None:
    unasked = replace(a_case(SERVERS, FOUND), is_chosen=False)
    inject = Proposal((InjectEmpty("b", gtids("a:3")),))
    assert unless_doubtful(unasked, inject) is inject
    refused = Refusal("another reason")
    assert unless_doubtful(unasked, refused) is refused
    certain = model(server("a", "a:1-3"), server("b", "a:1-2", replace(DOUBTFUL, doubt="")))
    assert unless_doubtful(replace(unasked, model=certain), START) is START
    failing = replace(DOUBTFUL, fails="it is another server's address")  # an invariant refuses it
    known = model(server("a", "a:1-3"), server("b", "a:1-2", failing))
    assert unless_doubtful(replace(unasked, model=known), START) is START
