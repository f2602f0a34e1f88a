"""Which open questions binary logs can answer; few servers are asked, and rarely.

How it works
------------
A transaction of its source is missing on a replica. The sets do not show whether the applier has
already passed it, or whether the receiver drops it. The applier passes it after RESET BINARY LOGS
AND GTIDS with a gtid_purged that is too small, SOURCE_LOG_POS, or a crash of the replica. The
source's log shows both: it has the position of the transaction, and the channel reports its own
position in the same log.

* **A search** finds out which of them a channel has passed: log_searches.py.
* **Commits** of a few transactions. These are read:

  - of losses, both ends of each interval (topology/facts/lost.py)
  - what a channel has gone past (of a large gap both ends of each interval), and an earlier
    transaction that its replica has, for their order (reset_signs.py) and their server_id
    (rules/absent_causes.py)
  - the first transaction due at a receiver that does not move (topology/facts/receivers.py)
  - what is due from a server whose list of logs shows that one was deleted (rules/gone_logs.py),
    for `handshake` also what it would send to each other server (topology/facts/missing_logs.py)
  - what only the log shows about one edge (commit_questions.py)

* **The first log** of servers that lost transactions, of replicas whose channel has gone past some,
  and of the sources from which these were received (reset_signs.py). Also of servers that may not
  have logged what they have purged (topology/facts/unlogged.py).
* **Changes of gtid_purged** in the error log of servers that have never purged a log. Also the time
  when the origin committed the newest GTIDs that were set (topology/facts/declared.py).
* **The order of two origins** in the log of a server whose GTIDs another server has in gtid_purged.
  Also the first log of that other server (topology/facts/declared_later.py).
* **What waits in a relay log although the replica has executed it**: a search, for the position of
  the applier (topology/facts/declared_waiting.py, committed_by_hand.py).
* **The log that is purged first** of those that have what another server or a consumer still needs
  (runway.py).
* **What extra transactions would change** (E1, E3, H7, J3): the finding shows it, and nothing is
  decided by it. Of a large set both ends of each interval.
* **The schemas** of a server that has executed nothing, and that no channel links or that has not
  received what its source has. It is new only if it has no schemas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.declared import newest_set
from topology.facts.declared_later import unordered
from topology.facts.joining import evaluate_parts
from topology.facts.log_order import received_by
from topology.facts.loss_history import neighbours_of
from topology.facts.lost import samples_of
from topology.facts.receivers import samples_in
from topology.facts.reset_signs import earlier_samples, may_have_had
from topology.facts.runway import needs_of
from topology.facts.unlogged import candidates_in, logs_received, purged_above_a_gap
from topology.questions.commit_questions import commits_to_look_up, samples_of_no_server
from topology.questions.log_searches import Search, searches_of, searches_of_done
from topology.readings.history_evidence import ends_of, samples_of_gap


@dataclass(frozen=True, slots=True)
class LogQuestions:
    """The questions for one server."""

    first_log: bool = False
    commits: tuple[GtidSet, ...] = ()
    searches: tuple[Search, ...] = ()
    purged_changes: bool = False
    schemas: bool = False
    reaches: tuple[GtidSet, ...] = ()  # which log has the first of each set
    extras: GtidSet = GtidSet()  # noqa: RUF009 - immutable; what they would change


def questions_of(
    facts: ClusterFacts, offered: GtidSet | None = None, *, pairs: bool = False
) -> Mapping[str, LogQuestions]:
    """Return the questions for each server; empty if the sets leave none.

    With an `offered` set, also: until when each server has what it would send to that set. With
    `pairs`, also: whether a server with a missing log still has what it would send to each other.
    """
    asked: dict[str, LogQuestions] = {}

    def ask(name: str, question: LogQuestions) -> None:
        before = asked.get(name, LogQuestions())
        asked[name] = LogQuestions(
            first_log=before.first_log or question.first_log,
            commits=(*before.commits, *(each for each in question.commits if each)),
            searches=(*before.searches, *question.searches),
            purged_changes=before.purged_changes or question.purged_changes,
            schemas=before.schemas or question.schemas,
            reaches=(*before.reaches, *(each for each in question.reaches if each)),
            extras=before.extras | question.extras,
        )

    servers = facts.last
    for lost in facts.lost:
        if lost.lost:
            neighbours = neighbours_of(facts, lost)
            ask(lost.origin, LogQuestions(first_log=True, commits=(neighbours,)))
            ask(lost.holder, LogQuestions(commits=(neighbours, samples_of(lost))))
    for name in (*candidates_in(facts.snapshot), *purged_above_a_gap(facts.snapshot)):
        ask(name, LogQuestions(first_log=True, purged_changes=not logs_received(servers[name])))
    for (name, origin), newest in newest_set(facts.snapshot).items():
        if {name, origin} <= facts.fully_read.keys():
            ask(name, LogQuestions(purged_changes=True))
            ask(origin, LogQuestions(commits=(newest,)))
    for each in unordered(facts.snapshot):
        if {each.server, each.holder} <= facts.fully_read.keys():
            ask(each.server, LogQuestions(first_log=True, commits=(each.earlier,)))
            ask(each.holder, LogQuestions(commits=(each.earlier, *each.samples)))
    for name, search in searches_of_done(facts):
        ask(name, LogQuestions(searches=(search,)))
    for name, due in samples_in(facts):
        ask(name, LogQuestions(commits=(due,)))
    for edge in facts.edges:
        if edge.expected and not servers[edge.replica].gtid_executed:
            ask(edge.replica, LogQuestions(schemas=True))
        if servers[edge.source].gone_logs or servers[edge.source].unlisted_logs:
            ask(edge.source, LogQuestions(commits=(samples_of_gap(edge.expected),)))
        for search in searches_of(facts, edge):
            ask(edge.source, LogQuestions(searches=(search,)))
        if gone := edge.passed | edge.bypassed:
            source, replica = servers[edge.source], servers[edge.replica]
            ask(source.name, LogQuestions(first_log=bool(edge.passed)))
            received = received_by(edge, replica)
            earlier = earlier_samples(replica, gone, source=source, received=received)
            ask(replica.name, LogQuestions(first_log=True, commits=(earlier,)))
            wanted = _ends(edge.passed) | samples_of_gap(edge.bypassed)
            ask(source.name, LogQuestions(commits=(wanted, earlier)))
        for name, question in _about_given_set(facts, edge.source, edge.replica, edge.errant):
            ask(name, question)
        for name, gtids in commits_to_look_up(facts, edge):
            ask(name, LogQuestions(commits=(gtids,)))
    for need in needs_of(facts):
        ask(need.server, LogQuestions(reaches=(need.gtids,)))
    about_all = (*_about_extras(facts), *_about_sets(facts, offered, pairs=pairs))
    for name, question in about_all:
        ask(name, question)
    for joining in evaluate_parts(facts).joinings:
        if not servers[joining.server].logged:
            ask(joining.server, LogQuestions(schemas=True))
    return {name: each for name, each in sorted(asked.items()) if each != LogQuestions()}


def _about_given_set(
    facts: ClusterFacts, source: str, replica: str, extra: GtidSet
) -> Iterator[tuple[str, LogQuestions]]:
    """Yield what shows whether a source had a replica's extra GTIDs before it was given its set."""
    if had := may_have_had(facts.last[source], extra):
        yield source, LogQuestions(first_log=True)
        yield replica, LogQuestions(commits=(_ends(had),))


def _about_sets(
    facts: ClusterFacts, offered: GtidSet | None, *, pairs: bool
) -> Iterator[tuple[str, LogQuestions]]:
    """Yield what is asked about sets that a server could be offered, by server."""
    sets = [] if offered is None else [offered]
    sets += [each.sets[1] for each in facts.snapshot.consumers if each.sets is not None]
    for held in sets:
        for name, server in facts.last.items():
            due = server.logged - held
            yield name, LogQuestions(reaches=(due,), commits=_searched(facts, name, due))
    for name, server in facts.last.items() if pairs else ():
        is_whole = not (server.gone_logs or server.unlisted_logs)
        for other, reading in facts.fully_read.items():
            due = server.logged - reading.last.gtid_executed
            if other != name and due:
                yield name, LogQuestions(commits=(samples_of_no_server(facts, due),))
            if other != name and due and not is_whole:
                yield name, LogQuestions(reaches=(due,), commits=_searched(facts, name, due))


def _searched(facts: ClusterFacts, name: str, due: GtidSet) -> tuple[GtidSet, ...]:
    """Return what is searched for in the logs of a server, if one is missing without an error.

    Where a log is listed and gone, only the heads of the others count (missing_logs.py).
    """
    server = facts.last[name]
    return (samples_of_gap(due),) if server.unlisted_logs and not server.gone_logs else ()


def _about_extras(facts: ClusterFacts) -> Iterator[tuple[str, LogQuestions]]:
    """Yield what is asked about extra sets, by server, as far as the server did not purge them."""
    found = [(lost.holder, lost.lost) for lost in facts.lost]
    found += [(edge.replica, edge.errant) for edge in facts.edges]
    found += [
        (each.server, each.only_there or each.extra) for each in evaluate_parts(facts).joinings
    ]
    for name, extra in found:
        yield name, LogQuestions(extras=samples_of_gap(extra & facts.last[name].logged))


def _ends(gtid_set: GtidSet) -> GtidSet:
    return GtidSet.union_of(ends_of(gtid_set))
