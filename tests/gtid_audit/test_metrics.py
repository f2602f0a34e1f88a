import math
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gtid import GNO_END, GtidSet
from gtid_audit import __version__
from gtid_audit.service import audit_series
from gtid_audit.service.audit_series import (
    HOLE_CODES,
    _not_delivered,
    _on_their_way,
    _shorter,
    series_of,
)
from gtid_audit.service.cluster_state import ClusterState, Schedule, measured_audits
from gtid_audit.service.metrics import METRICS
from tests.gtid_audit.build import half_read, healthy, holed
from tests.gtid_audit.scraped import scrape, states_of, text_of
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, an_unread, commits_of
from tests.topology.test_runway import CLOSED, source, stopped
from topology.adapters.inventory.fleet_model import RESERVED_LABELS
from topology.audit_cluster import audit_cluster, defect, not_evaluated
from topology.catalogue.verdict_table import CATALOGUE
from topology.facts.cluster_facts import gather_facts
from topology.facts.runway import Need
from topology.policy import Policy
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ThreadState
from topology.readings.vendors import Vendor

DOCS = Path(__file__).parents[2] / "docs"
OF_FINDINGS = {
    "gtid_audit_finding_transactions",
    "gtid_audit_finding_first_seen_timestamp_seconds",
    "gtid_audit_finding_last_seen_timestamp_seconds",
    "gtid_audit_finding_deadline_timestamp_seconds",
    "gtid_audit_hole_first_seen_timestamp_seconds",
}
DAY = 86_400.0
RETENTION = (
    ("binlog_expire_logs_seconds", "172800"),
    ("gtid_mode", "ON"),
    ("gtid_mode_source", "EXPLICIT"),
    ("server_id_source", "EXPLICIT"),
)


def verdicts(found: dict[tuple[str, ...], float]) -> dict[str, str]:
    assert set(found.values()) <= {0.0, 1.0}
    return {cluster: verdict for (cluster, verdict), value in found.items() if value}


def test_before_any_cluster_is_known_there_is_the_version() -> None:
    assert scrape([]) == {"gtid_audit_build_info": {(__version__,): 1.0}}
    assert text_of([]).count("# HELP") == 1


def test_a_cluster_that_was_never_audited_has_its_counters_only() -> None:
    waiting = ClusterState("x", (), None, Schedule(60.0, audits=0, failures=2))
    assert scrape([waiting]) == {
        "gtid_audit_build_info": {(__version__,): 1.0},
        "gtid_audit_interval_seconds": {("x",): 60.0},
        "gtid_audit_audits_total": {("x",): 0.0},
        "gtid_audit_audit_failures_total": {("x",): 2.0},
    }


def test_a_healthy_cluster_has_every_evaluated_code_at_zero() -> None:
    found = scrape(states_of(healthy("x")))
    assert set(found) == METRICS.keys() - OF_FINDINGS
    evaluated = {code for code, entry in CATALOGUE.items() if entry.has_rule}
    assert {code for _, code, _ in found["gtid_audit_findings"]} == evaluated
    assert set(found["gtid_audit_findings"].values()) == {0.0}
    assert len(found["gtid_audit_verdict"]) == 4
    assert verdicts(found["gtid_audit_verdict"]) == {"x": "OK"}
    assert found["gtid_audit_unread_facts"] == {("x", "a"): 0.0, ("x", "b"): 0.0}
    assert found["gtid_audit_server_up"] == {("x", "a"): 1.0, ("x", "b"): 1.0}
    edges = {("x", "a", "b", ""): 0.0, ("x", "b", "a", ""): 0.0}
    for name in ("missing", "hole", "errant"):
        assert found[f"gtid_audit_{name}_transactions"] == edges
    assert found["gtid_audit_last_audit_timestamp_seconds"] == {("x",): NOON.timestamp() + 2}
    assert found["gtid_audit_audit_duration_seconds"] == {("x",): 1.5}
    assert found["gtid_audit_interval_seconds"] == {("x",): 60.0}
    assert found["gtid_audit_audits_total"] == {("x",): 7.0}
    assert found["gtid_audit_audit_failures_total"] == {("x",): 1.0}
    assert "# TYPE gtid_audit_audits_total counter" in text_of(states_of(healthy("x")))


def test_zeros_are_left_out_on_request() -> None:
    found = scrape(states_of(healthy("x"), holed("y"), half_read("z")), zeros=False)
    codes = {(cluster, code) for cluster, code, _ in found["gtid_audit_findings"]}
    assert codes >= {("y", "H1"), ("z", "U1")}
    assert 0.0 not in found["gtid_audit_findings"].values()
    assert "x" not in {cluster for cluster, _, _ in found["gtid_audit_findings"]}
    assert verdicts(found["gtid_audit_verdict"]) == {"x": "OK", "y": "CRITICAL", "z": "UNKNOWN"}


def test_findings_are_counted_by_cluster_and_code() -> None:
    found = scrape(states_of(healthy("x"), holed("y")))
    assert verdicts(found["gtid_audit_verdict"]) == {"x": "OK", "y": "CRITICAL"}
    assert found["gtid_audit_findings"]["y", "H1", "critical"] == 1.0
    assert found["gtid_audit_findings"]["y", "E1", "critical"] == 0.0
    assert found["gtid_audit_findings"]["x", "H1", "critical"] == 0.0


def test_a_finding_has_its_servers_and_its_age() -> None:
    found = scrape(states_of(holed("y")))
    place = ("y", "H1", "critical", "a", "b", "")
    assert found["gtid_audit_finding_transactions"][place] == 3.0
    first_seen = found["gtid_audit_finding_first_seen_timestamp_seconds"]
    assert first_seen.keys() == found["gtid_audit_finding_transactions"].keys()
    assert found["gtid_audit_hole_first_seen_timestamp_seconds"] == {
        ("y", "a", "b", ""): first_seen[place]
    }
    # b's own 50 are on a, in neither direction missing; a's hole is on b only.
    assert found["gtid_audit_hole_transactions"]["y", "a", "b", ""] == 3.0
    assert found["gtid_audit_missing_transactions"]["y", "a", "b", ""] == 3.0
    assert found["gtid_audit_hole_transactions"]["y", "b", "a", ""] == 0.0


def test_missing_holds_what_is_on_its_way() -> None:
    received = GtidSet.parse(f"{A}:1-100")
    late = a_cluster(
        "late",
        a_server("a", A, f"{A}:1-100"),
        a_server("b", B, f"{A}:1-80", channels=(a_channel("a", A, gtid_retrieved=received),)),
    )
    found = scrape(states_of(late))
    assert found["gtid_audit_missing_transactions"]["late", "a", "b", ""] == 20.0
    assert found["gtid_audit_hole_transactions"]["late", "a", "b", ""] == 0.0


def errant(name: str = "pair") -> ClusterSnapshot:
    """b has two transactions of its own that a will not receive."""
    return a_cluster(
        name,
        a_server("a", A, f"{A}:1-100"),
        a_server(
            *("b", B, f"{A}:1-100,{B}:1-2"),
            channels=(a_channel("a", A),),
            history_evidence=commits_of(f"{B}:1", f"{B}:2"),
        ),
    )


def test_errant_transactions_are_of_the_replica() -> None:
    found = scrape(states_of(errant("x")))
    assert found["gtid_audit_errant_transactions"] == {("x", "a", "b", ""): 2.0}
    assert found["gtid_audit_missing_transactions"] == {("x", "a", "b", ""): 0.0}
    assert found["gtid_audit_finding_transactions"]["x", "E1", "critical", "a", "b", ""] == 2.0
    assert "gtid_audit_hole_first_seen_timestamp_seconds" not in found


@pytest.mark.parametrize(
    ("receiver", "purged", "position", "expected"),
    [
        (ThreadState.CONNECTING, f"{B}:1-3", True, 5.0),  # and what comes after them
        (ThreadState.RUNNING, f"{B}:1-3", True, 3.0),  # it was connected before
        (ThreadState.CONNECTING, f"{B}:1-3", False, 5.0),  # its file is purged as well
        (ThreadState.CONNECTING, "", True, 0.0),
    ],
)
def test_what_a_refused_channel_does_not_bring_back_is_errant(
    receiver: ThreadState, purged: str, expected: float, *, position: bool
) -> None:
    back = a_channel("b", B, receiver=receiver, auto_position=position)
    pair = a_cluster(
        "x",
        a_server("a", A, f"{A}:1-100", channels=(back,)),
        a_server(
            *("b", B, f"{A}:1-100,{B}:1-5"),
            gtid_purged=GtidSet.parse(purged),
            channels=(a_channel("a", A),),
        ),
    )
    found = scrape(states_of(pair))
    assert found["gtid_audit_errant_transactions"]["x", "a", "b", ""] == expected
    assert found["gtid_audit_errant_transactions"]["x", "b", "a", ""] == 0.0
    assert (found["gtid_audit_findings"]["x", "P1", "critical"] == 1.0) is (expected > 0.0)


def test_what_another_source_sends_is_not_errant() -> None:
    """b has them from c. a is to receive them from both, and b refuses it."""
    back = a_channel("b", B, receiver=ThreadState.CONNECTING)
    three = a_cluster(
        "x",
        a_server("a", A, f"{A}:1-100", channels=(back,)),
        a_server(
            *("b", B, f"{A}:1-100,{B}:1-2,{C}:1-5"),
            gtid_purged=GtidSet.parse(f"{B}:1-2,{C}:1-5"),
            channels=(a_channel("a", A), a_channel("c", C, name="from_c")),
        ),
        a_server("c", C, f"{C}:1-5"),
    )
    assert scrape(states_of(three))["gtid_audit_errant_transactions"]["x", "a", "b", ""] == 2.0


def test_what_is_not_known_is_nan_and_the_rest_is_known() -> None:
    found = scrape(states_of(half_read("z")))
    assert verdicts(found["gtid_audit_verdict"]) == {"z": "UNKNOWN"}
    assert math.isnan(found["gtid_audit_findings"]["z", "H1", "critical"])
    assert not math.isnan(found["gtid_audit_findings"]["z", "U1", "warning"])
    assert found["gtid_audit_unread_facts"] == {("z", "a"): 0.0, ("z", "b"): 1.0}
    assert found["gtid_audit_server_up"] == {("z", "a"): 1.0, ("z", "b"): 0.0}
    for name in ("executed_transactions", "purged_transactions", "executed_intervals"):
        values = found[f"gtid_audit_server_{name}"]
        assert math.isnan(values["z", "b"])
        assert not math.isnan(values["z", "a"])
    assert math.isnan(found["gtid_audit_server_executed_tsids"]["z", "b"])
    assert math.isnan(found["gtid_audit_server_gno_headroom"]["z", "b"])


def test_a_channel_whose_source_was_not_read_is_nan() -> None:
    channel = a_channel("b", B, source_host="b.example")
    a = a_server("a", A, f"{A}:1-100,{B}:1-5", channels=(channel,))
    source = an_unread("b", server_uuid=B)
    found = scrape(states_of(a_cluster("z", a, source)))
    edges = [
        found[f"gtid_audit_{name}"]
        for name in (
            *("missing_transactions", "hole_transactions", "errant_transactions"),
            "runway_seconds",
        )
    ]
    for series in edges:
        assert series.keys() == {("z", "b", "a", "")}
        assert all(map(math.isnan, series.values()))


def test_an_unreachable_server_shows_beside_a_critical_finding() -> None:
    """The verdict alone would hide it: a critical finding outweighs what is not known."""
    a, b = holed("y").first
    c = an_unread("c")
    found = scrape(states_of(a_cluster("y", a, b, c)))
    assert verdicts(found["gtid_audit_verdict"]) == {"y": "CRITICAL"}
    assert found["gtid_audit_server_up"]["y", "c"] == 0.0
    assert found["gtid_audit_unread_facts"]["y", "c"] >= 1.0
    findings = found["gtid_audit_findings"]
    assert findings["y", "H1", "critical"] == 1.0, "found, whatever else is not known"
    assert math.isnan(findings["y", "H8", "critical"])
    assert findings["y", "U2", "warning"] == 0.0, "that nothing was torn is known"


def test_the_sets_of_a_server() -> None:
    executed = f"{A}:1-10:21-30,{A}:tag:1-5,{B}:1-50"
    server = a_server("a", A, executed, gtid_purged=GtidSet.parse(f"{A}:1-10"))
    found = scrape(states_of(a_cluster("x", server, a_server("b", B, ""))))
    assert found["gtid_audit_server_executed_transactions"]["x", "a"] == 75.0
    assert found["gtid_audit_server_purged_transactions"]["x", "a"] == 10.0
    assert found["gtid_audit_server_executed_intervals"]["x", "a"] == 4.0
    assert found["gtid_audit_server_executed_tsids"]["x", "a"] == 3.0
    headroom = found["gtid_audit_server_gno_headroom"]
    assert headroom == {("x", "a"): float(GNO_END - 1 - 20), ("x", "b"): float(GNO_END - 1)}
    half = a_cluster("x", a_server("a", A, f"{A}:1-{GNO_END // 2}"))
    found = scrape(states_of(half))
    assert found["gtid_audit_server_gno_headroom"] == {("x", "a"): float(GNO_END // 2)}


def kept(**facts: object) -> ClusterSnapshot:
    """A pair whose source keeps its logs for two days, or as `facts` say."""
    logs = (BinaryLog("binlog.000003", 4711),)
    source = a_server("a", A, f"{A}:1-100", settings=RETENTION, binary_logs=logs)
    return a_cluster(
        "x",
        replace(source, **facts),  # type: ignore[arg-type]
        a_server("b", B, f"{A}:1-100", channels=(a_channel("a", A),)),
    )


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        ({}, 2 * DAY),
        ({"settings": (("binlog_expire_logs_seconds", "0"), *RETENTION[1:])}, math.inf),
        ({"settings": RETENTION[1:]}, math.nan),
        ({"binary_logs": None}, math.nan),
        ({"vendor": Vendor.AURORA}, math.nan),
    ],
)
def test_the_runway_of_a_replica_that_needs_nothing(
    facts: dict[str, object], seconds: float
) -> None:
    runway = scrape(states_of(kept(**facts)))["gtid_audit_runway_seconds"]["x", "a", "b", ""]
    if math.isnan(seconds):
        assert math.isnan(runway)
    else:
        assert runway == pytest.approx(seconds, abs=2)  # deadlines are in whole seconds


def test_the_runway_of_a_stopped_replica_ends_with_the_log_that_it_needs() -> None:
    found = scrape(states_of(a_cluster("x", source(), stopped())))
    place = ("x", "a", "b", "")
    # From the end of the reading, a second after noon, to the deletion of the log.
    left = (CLOSED - NOON).total_seconds() + 7 * DAY - 1
    assert found["gtid_audit_runway_seconds"][place] == pytest.approx(left, abs=2)
    [deadline] = {*found["gtid_audit_finding_deadline_timestamp_seconds"].values()}
    assert deadline == pytest.approx(CLOSED.timestamp() + 7 * DAY, abs=2)
    assert found["gtid_audit_missing_transactions"][place] == 6.0, "still to be sent"
    assert found["gtid_audit_hole_transactions"][place] == 0.0


def test_the_runway_is_over_when_the_source_has_purged_what_the_replica_needs() -> None:
    purged = {
        "gtid_executed": GtidSet.parse(f"{A}:1-110"),
        "gtid_purged": GtidSet.parse(f"{A}:1-105"),
    }
    found = scrape(states_of(kept(**purged)))
    assert found["gtid_audit_runway_seconds"]["x", "a", "b", ""] == 0.0


def test_the_runway_of_a_log_that_was_not_read_is_not_known() -> None:
    """The replica needs transactions, and until when they are kept could not be read."""
    unread = source(history_evidence=None)
    found = scrape(states_of(a_cluster("x", unread, stopped())))
    assert math.isnan(found["gtid_audit_runway_seconds"]["x", "a", "b", ""])


@pytest.mark.parametrize(
    ("one", "other", "shorter"),
    [(1.0, 2.0, 1.0), (math.inf, 2.0, 2.0), (math.nan, 2.0, None), (1.0, math.nan, None)],
)
def test_of_two_needs_the_shorter_counts(one: float, other: float, shorter: float | None) -> None:
    found = _shorter(one, other)
    assert math.isnan(found) if shorter is None else found == shorter


def test_two_needs_of_one_place_are_one_runway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until when the first is kept is not known, so the runway is not known."""
    needs = [Need("a", "b", GtidSet.parse(f"{A}:1")), Need("a", "b", GtidSet.parse(f"{A}:5"))]
    monkeypatch.setattr(audit_series, "needs_of", lambda _facts: iter(needs))
    found = scrape(states_of(a_cluster("x", source(), stopped())))
    assert math.isnan(found["gtid_audit_runway_seconds"]["x", "a", "b", ""])
    needs.pop(0)
    found = scrape(states_of(a_cluster("x", source(), stopped())))
    assert found["gtid_audit_runway_seconds"]["x", "a", "b", ""] > 0


def test_every_part_of_what_is_missing_counts_once() -> None:
    facts = gather_facts(healthy("x"), Policy())
    delivered = ("applying_below", "applying_above", "queued_below", "queued_above", "expected")
    holes = ("purged", "bypassed", "passed", "ignored", "dropped_same_server_id")
    sizes = {name: 1 << number for number, name in enumerate((*delivered, *holes))}
    sets: dict[str, Any] = {name: GtidSet.parse(f"{A}:1-{size}") for name, size in sizes.items()}
    edge = replace(facts.edges[0], **sets)
    assert _on_their_way(edge) == sum(sizes[name] for name in delivered)
    assert _not_delivered(edge) == sum(sizes[name] for name in holes)


def test_a_cluster_on_which_the_auditor_failed_has_no_channels() -> None:
    [state] = states_of(healthy("x"))
    assert state.latest is not None
    broken = not_evaluated("x", {defect("x", RuntimeError("boom"))}, healthy("x").last)
    [measured] = measured_audits([broken], [healthy("x")], Policy())
    latest = replace(state.latest, audit=broken, series=measured.series)
    found = scrape([replace(state, latest=latest)])
    assert verdicts(found["gtid_audit_verdict"]) == {"x": "UNKNOWN"}
    assert found["gtid_audit_unread_facts"]["x", "every server"] == 1.0
    assert "gtid_audit_missing_transactions" not in found
    assert found["gtid_audit_server_up"] == {("x", "a"): 1.0, ("x", "b"): 1.0}


def test_two_findings_of_one_place_are_one_series() -> None:
    """A finding without a channel, and one of the channel with the empty name."""
    [state] = states_of(errant("x"))
    assert state.latest is not None
    [found] = [each for each in state.latest.audit.findings if each.code == "E1"]
    other = None if found.channel is not None else ""
    until = found.first_seen + timedelta(hours=1)
    twin = replace(
        found, channel=other, first_seen=found.first_seen - timedelta(hours=1), deadline=until
    )
    audit = replace(state.latest.audit, findings=(found, twin))
    other_channel = replace(audit, findings=(replace(found, channel="c2"),))
    [labels] = series_of(other_channel, errant("x"), Policy())["gtid_audit_finding_transactions"]
    assert labels[-1] == "c2"
    series = series_of(audit, errant("x"), Policy())
    place = ("x", "E1", "critical", "a", "b", "")
    assert series["gtid_audit_finding_transactions"] == {place: 4.0}
    first = series["gtid_audit_finding_first_seen_timestamp_seconds"][place]
    assert first == twin.first_seen.timestamp()
    assert series["gtid_audit_finding_deadline_timestamp_seconds"] == {place: until.timestamp()}


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_channels_of_a_server_that_hangs_are_not_known_rather_than_absent(name: str) -> None:
    """Also if the source is known by another address, and only its server_uuid shows it."""
    well = a_cluster(
        "x",
        a_server("a", A, f"{A}:1-9", host="a.other"),
        a_server("b", B, f"{A}:1-9", channels=(a_channel("a", A),)),
    )
    series = series_of(audit_cluster(well), well, Policy())
    labels = ("x", "a", "b", "")
    assert series["gtid_audit_missing_transactions"] == {labels: 0.0}
    others = [each for each in well.first if each.name != name]
    unread = an_unread(name, host=f"{name}.other")
    hanging = a_cluster("x", *sorted((*others, unread), key=lambda each: each.name))
    for _ in range(2):  # and again in the next audit
        series = series_of(audit_cluster(hanging), hanging, Policy(), earlier=series)
        for metric in ("missing_transactions", "errant_transactions", "hole_transactions"):
            [(found, value)] = series[f"gtid_audit_{metric}"].items()
            assert (found, math.isnan(value)) == (labels, True)
    gone = a_cluster("x", *others)
    series = series_of(audit_cluster(gone), gone, Policy(), earlier=series)
    assert series["gtid_audit_missing_transactions"] == {}
    stopped_for_good = a_cluster(
        "x", a_server("a", A, f"{A}:1-9"), a_server("b", B, f"{A}:1-9", channels=())
    )
    now = series_of(
        audit_cluster(stopped_for_good),
        stopped_for_good,
        Policy(),
        earlier={"gtid_audit_missing_transactions": {labels: 0.0}},
    )
    assert now["gtid_audit_missing_transactions"] == {}


def test_series_vanish_with_what_they_are_about() -> None:
    assert 'cluster="y"' in text_of(states_of(healthy("x"), holed("y")))
    assert 'cluster="y"' not in text_of(states_of(healthy("x")))


def test_names_in_labels_are_escaped() -> None:
    name = 'a"b\\c\nd'
    assert verdicts(scrape(states_of(healthy(name)))["gtid_audit_verdict"]) == {name: "OK"}


def test_every_metric_has_the_prefix_of_the_contract() -> None:
    assert all(name.startswith("gtid_audit_") for name in METRICS)
    reserved = {label for row in METRICS.values() if row.is_of_cluster for label in row.labels}
    assert reserved <= RESERVED_LABELS, "no label of a cluster replaces one of a metric"


def test_hole_codes_are_those_of_holes() -> None:
    assert {"H1", "H2", "H3", "H4", "H5", "H8", "P1", "P2"} == HOLE_CODES


def test_the_page_has_every_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    written = {name: tuple(re.findall(r"\w+", labels)) for name, labels in rows}
    assert written == {name: row.labels for name, row in METRICS.items()}


@pytest.mark.parametrize(("zeros", "word"), [(True, "with zeros"), (False, "without zeros")])
def test_the_page_has_the_number_of_series_of_a_healthy_pair(*, zeros: bool, word: str) -> None:
    """The formula of the page: clusters, servers, channels, codes."""
    text = text_of(states_of(healthy("x")), zeros=zeros)
    counted = sum(len(family.samples) for family in text_string_to_metric_families(text))
    page = (DOCS / "metrics.md").read_text()
    assert f"{counted - 1} {word}" in page  # the version is of the process
