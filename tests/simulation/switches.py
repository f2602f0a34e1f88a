"""Conditions of the product that can be switched off, one at a time, for a test.

A switch names a function and a piece of its source. Inside `off` the function runs with that piece
replaced. Where the piece is not found any more the switch fails: it has to follow the product.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gtid_audit.tasks import ddl_of_others, definition_servers, drift_comparison
from repair.doubts import rows_there, undecided
from repair.model import emptied_servers, former_history, invariants
from repair.scripts import channel_procedures
from topology.catalogue import findings
from topology.facts import (
    channel_places,
    content_pairs,
    edge_facts,
    errant,
    former_ids,
    lost,
    source_answer,
    unseen,
)
from topology.facts import cluster_facts as facts
from topology.rules import (
    answering_sources,
    consumer_sets,
    differences,
    failed_appliers,
    passed,
    schema_differences,
    stalled_appliers,
    threads,
)
from topology.rules import could_join as joining


@dataclass(frozen=True, slots=True)
class Switch:
    """One condition: where it is, and what is there instead when it is off."""

    function: Callable[..., Any]
    condition: str
    instead: str


SWITCHES: dict[str, Switch] = {
    "what-is-upstream-arrives": Switch(
        errant.errant_of,
        "errant = extra - at_source - held_by(graph.upstream_of(edge.source) - {edge.source}, last)",
        "errant = extra - at_source",
    ),
    "a-group-takes-back-no-extra": Switch(
        errant.errant_of,
        "graph.upstream_of(edge.source, stopped_too=True, only_extra=True)",
        "upstream",
    ),
    "what-no-linked-pair-shows-is-compared": Switch(
        content_pairs.other_pairs,
        "while best := _most_hidden(shown, logs, parts.sources):",
        "while best := None:",
    ),
    "owned-by-the-origin-is-a-lead": Switch(
        facts._lost_facts, "leading = beyond & origin.gtid_owned", "leading = GtidSet()"
    ),
    "other-sources-explain-extra": Switch(
        edge_facts._extra, "extra -= channel.gtid_retrieved", "continue"
    ),
    "unread-means-unknown": Switch(
        findings.verdict_of, "if any(True for _ in unknown):", "if False:"
    ),
    "unseen-sources-make-it-likely": Switch(
        unseen.unseen_sources, "return tuple(sorted(found))", "return ()"
    ),
    "a-failed-applier-is-reported": Switch(
        failed_appliers.applier_error,
        "if not (channel.applier_errno or channel.applier_error):",
        "if True:",
    ),
    "a-failed-receiver-is-reported": Switch(
        threads.receiver_error,
        "if _has_receiver_error(channel):",
        "if False:",
    ),
    "a-stopped-thread-is-reported": Switch(
        threads.replication_not_running, "        if stopped:", "        if False:"
    ),
    "servers-without-a-link": Switch(
        joining.cannot_join_diverged, "if joining.extra:", "if False:"
    ),
    "an-errant-write-is-reported": Switch(
        differences.errant_available,
        "if available and not _is_reported_elsewhere(facts, edge):",
        "if False:",
    ),
    "a-lock-is-reported": Switch(stalled_appliers.applier_blocked, "if wait is None:", "if True:"),
    "an-idle-applier-has-passed-it": Switch(
        passed.passed_by_applier, "for edge in facts.edges:", "for edge in ():"
    ),
    "free-numbers-are-counted": Switch(
        lost.commits_until,
        "counts.append((end.filled() - used).gtid_count)",
        "counts.append(end.gtid_count)",
    ),
    "places-in-the-source-log": Switch(
        channel_places.searched,
        "before = GtidSet.union_of(search.before for search in found)",
        "before = GtidSet()",
    ),
    "own-server-id-in-the-logs": Switch(
        inspect.unwrap(former_ids._ids_in_logs),
        "if server.history_evidence is not None",
        "if False",
    ),
    "content-needs-a-decision": Switch(
        undecided._needs_decision, "if not content.needing_decision(wanted):", "if True:"
    ),
    "content-is-read-first": Switch(undecided.undecided_default, "if case.is_chosen:", "if True:"),
    "an-interrupted-injection-is-planned-again": Switch(
        undecided.undecided_default, "if unreached is not None:", "if False:"
    ),
    "empty-only-where-the-rows-are": Switch(
        rows_there._are_on_all,
        "for name in (replica.name, *below(case.model, replica.name))",
        "for name in (replica.name,)",
    ),
    "a-script-starts-no-server-that-was-reset-since": Switch(
        channel_procedures._unchanged, "if executed else ()", "if False else ()"
    ),
    "nothing-is-delivered-to-be-skipped": Switch(
        invariants.nothing_is_skipped, "if not server.skips_next:", "if True:"
    ),
    "an-emptied-server-gets-nothing-else": Switch(
        emptied_servers.nothing_on_an_emptied_server, "if is_emptied(server, before):", "if False:"
    ),
    "gtids-may-be-given-again": Switch(
        former_history.refusing_servers, 'if text is not None and text.code == "E3"', "if False"
    ),
    "two-commits-of-one-gtid": Switch(
        former_history._has_others, "return bool(given_again(edge, servers=known))", "return False"
    ),
    "a-consumer-is-refused-what-is-purged": Switch(
        source_answer._refused_by_sets, "last.gtid_purged - offer.sent", "GtidSet()"
    ),
    "a-consumer-has-what-a-server-lost": Switch(
        source_answer._accepted,
        "beyond = (offer.executed | offer.received) - source.has - allowed",
        "beyond = GtidSet()",
    ),
    "a-consumer-is-refused-after-a-failover": Switch(
        consumer_sets._after_failover, "or not can_be_source(server):", "or True:"
    ),
    "a-consumer-reads-what-is-being-committed": Switch(
        answering_sources._new_above,
        "(reading.last.gtid_executed | reading.last.gtid_owned) - reading.first.gtid_executed",
        "GtidSet()",
    ),
    "a-relay-log-may-deliver-to-a-consumer": Switch(
        answering_sources.may_arrive_from,
        "if _waits_unreported(facts, each, gtids)",
        "if False",
    ),
    "an-unread-source-may-deliver-to-a-consumer": Switch(
        answering_sources.may_arrive_from,
        "if each not in read or facts.last[each].channels is None",
        "if False",
    ),
    "definitions-that-differ-are-reported": Switch(
        schema_differences.is_drift, "return each.is_searched and not each.pending", "return False"
    ),
    "ddl-on-its-way-is-no-difference": Switch(
        schema_differences.is_drift, "return each.is_searched and not each.pending", "return True"
    ),
    "a-relay-log-explains-a-difference": Switch(
        drift_comparison._received,
        "each.gtid_retrieved for each in _channels(server, source)",
        "GtidSet() for _ in ()",
    ),
    "ddl-of-another-source-is-on-its-way": Switch(
        ddl_of_others.on_its_way_from,
        "return bool(on_the_way(wanted, [search]).concerning(drift.key, read))",
        "return False",
    ),
    "ddl-that-came-by-the-faster-way": Switch(
        drift_comparison._Comparing._returning, "if self.pair.source_receives:", "if False:"
    ),
    "unread-channels-may-bring-ddl": Switch(
        definition_servers.DefinitionServer.connected, '(), ("not read",)', "(), ()"
    ),
}


@contextmanager
def off(name: str) -> Iterator[None]:
    """Run with one condition switched off."""
    switch = SWITCHES[name]
    function = inspect.unwrap(switch.function)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(switch.condition) == 1, f"{name}: not found once: {switch.condition}"
    changed = source.replace(switch.condition, switch.instead)
    namespace: dict[str, Any] = {}
    exec(compile(changed, f"<{name}>", "exec"), function.__globals__, namespace)
    before = function.__code__
    function.__code__ = inspect.unwrap(namespace[function.__name__]).__code__
    try:
        yield
    finally:
        function.__code__ = before
