"""A receiver that was refused for its GTIDs is started when they fit, and only by selection."""

from dataclasses import replace

import pytest

from repair.model.actions import StartChannel
from repair.model.offered_strategies import offered
from repair.model.strategy_case import Refusal
from repair.strategies.done_by_hand import by_hand
from repair.strategies.refused_before import fits_by_now, start_as_selected
from tests.repair.build import channel, model, server
from tests.repair.cases import a_case, a_finding, proposed, reason
from tests.snapshots import NOON
from topology.catalogue.findings import Evidence, Finding
from topology.catalogue.strategy_table import STRATEGIES
from topology.rules.distinct_uuids import UUIDS_NOW
from topology.rules.threads import RECEIVER_ERROR

LOST = (
    "Got fatal error 1236 from source when reading data from binary log: 'Replica has more GTIDs"
    " than the source has, using the source's SERVER_UUID.'"
)
PURGED = "the source purged required binary logs"
OTHERS = ("Cannot replicate anonymous transaction when AUTO_POSITION = 1", "error 1045", "")
FITS = model(server("a", "a:1-3"), server("b", "a:1-3", channel("a", runs=False)))


def refused_by(text: str, code: str = "A4") -> Finding:
    seen = (
        Evidence("receiver errno", "13114", "b", NOON),
        Evidence(RECEIVER_ERROR, text, "b", NOON),
    )
    return replace(a_finding(code, "a:9"), evidence=seen)


@pytest.mark.parametrize("text", [LOST, PURGED])
def test_a_receiver_whose_gtids_fit_by_now_is_started_with_a_warning(text: str) -> None:
    done = proposed(start_as_selected(a_case(FITS, refused_by(text))))
    assert done.actions == (StartChannel("b", ""),)
    assert "audit with --content first" in done.warnings[-1]
    assert "a refused b for its GTIDs" in fits_by_now(refused_by(text), FITS)


@pytest.mark.parametrize("text", OTHERS)
def test_another_error_is_not_answered_by_a_start(text: str) -> None:
    assert "did not refuse it for its GTIDs" in reason(
        start_as_selected(a_case(FITS, refused_by(text)))
    )
    assert fits_by_now(refused_by(text), FITS) == ""


COPY = "A replica with the same server_uuid/server_id as this replica has connected"


def test_a_receiver_that_a_copy_disconnected_is_started_once_the_server_uuids_differ() -> None:
    finding = refused_by(COPY)
    assert "until you have repaired" in reason(start_as_selected(a_case(FITS, finding)))
    assert fits_by_now(finding, FITS) == ""
    now = Evidence(UUIDS_NOW, "2, all different", "b", NOON)
    repaired = replace(finding, evidence=(*finding.evidence, now))
    done = proposed(start_as_selected(a_case(FITS, repaired)))
    assert done.actions == (StartChannel("b", ""),)
    assert "a disconnected b for another replica" in done.warnings[-1]
    assert "different server_uuids now" in fits_by_now(repaired, FITS)
    assert fits_by_now(repaired, FITS.replace(server("a", "a:1-2"))) == "", "it is refused still"
    text = by_hand("explain", repaired, FITS)
    assert text.startswith("If the copy has its own server_uuid by now, only a start is left.")
    assert not by_hand("explain", finding, FITS).startswith("If the copy")


def test_what_is_refused_still_is_not_offered() -> None:
    lost = FITS.replace(server("a", "a:1-2"))
    purged = FITS.replace(server("a", "a:1-5", purged="a:1-4"))
    alone = model(server("b", "a:1-3", replace(channel("a", runs=False), source=None)))
    for servers in (lost, purged, alone, model(FITS["a"])):
        assert fits_by_now(refused_by(LOST), servers) == ""


def test_other_findings_are_started_as_before() -> None:
    done = proposed(start_as_selected(a_case(FITS, refused_by(LOST, "A7"))))
    assert done.warnings == ()
    assert fits_by_now(refused_by(LOST, "A7"), FITS) == ""
    # What forbids the start of a stopped channel forbids this one.
    until = replace(channel("a", runs=False), source=None)
    unread = model(FITS["a"], server("b", "a:1-3", until))
    for code in ("A4", "A7"):
        case = replace(a_case(unread, refused_by(LOST, code)), is_chosen=False)
        assert isinstance(start_as_selected(case), Refusal)


def test_a_group_is_offered_only_where_the_finding_is_about_one() -> None:
    stopped = refused_by(LOST, "A7")
    plain, in_group = (
        replace(stopped, strategies=tuple(STRATEGIES[each] for each in names))
        for names in (("start_channel",), ("join_group",))
    )
    assert offered(a_case(FITS, plain)) == "--strategy A7=NAME: start_channel"
    assert offered(a_case(FITS, in_group)) == "--strategy A7=NAME: start_channel, join_group"
