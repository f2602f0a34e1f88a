"""J1, J2, J3, A7: servers that no channel links, and which of them could join the others."""

from collections.abc import Iterator
from typing import Final

from gtid import Gtid, GtidSet
from gtid.counted_nouns import counted
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.joining import Joining, evaluate_parts
from topology.facts.late_transactions import late_doubt
from topology.facts.memberships import group_name_of, uuid_of_group
from topology.facts.reset_signs import may_have_rows
from topology.facts.source_limits import requires_tls
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.content import is_above_info
from topology.rules.extra_content import content_text
from topology.rules.joining_doubts import declared_doubt, refusal_doubts


def servers_not_linked(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A7: parts that no channel links, and that cannot be evaluated."""
    parts = evaluate_parts(facts).unevaluated
    if len(parts) > 1:
        servers = [facts.last[name] for group in parts for name in group]
        yield finding(
            facts,
            "A7",
            grade=Grade.PROVED,
            strategies=(),
            proof=tuple(
                evidence(
                    "channels",
                    ", ".join(
                        f"from {channel.source_host}:{channel.source_port}"
                        for channel in server.channels or ()
                    )
                    or "none",
                    server,
                )
                for server in servers
            ),
            explanation="No channel links these parts of the cluster: "
            + "; ".join(", ".join(group) for group in parts)
            + ". What one commits does not reach the other.",
        )


def can_join(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J1: a server that does not replicate, and could."""
    for joining in evaluate_parts(facts).joinings:
        if joining.extra or joining.purged or joining.lost:
            continue
        server, candidate = joining.server, joining.candidate
        what = f"would receive {many(joining.missing)}"
        if not joining.missing:
            what = f"already has everything {'else ' if joining.own else ''}that {candidate} has"
        doubt = _reset_doubt(facts, joining) + refusal_doubts(facts, joining)
        doubt += _unread_apart(facts, joining) + _other_contents(facts, joining)
        reading, groups = facts.fully_read[joining.server].last, facts.graph.group_uuids
        doubt += declared_doubt(facts, joining) + late_doubt(reading, joining.missing, groups)
        can = "its sets allow it to replicate" if doubt else "it can replicate"
        text = (
            f"No channel links {server} to the other servers. It is {_state(facts, joining)}: {can}"
            f" from {candidate}, and {what}."
        )
        if joining.own:
            text += (
                f" {candidate} also has {many(joining.own)} of {server}'s own that {server} does"
                f" not have (see E3, E6 and H7 of this audit): the receiver of {server} would drop"
                " them."
            )
        if allowed := _allowed_extra(facts, joining):
            text += (
                f" {server} also has {many(allowed)} that {candidate} does not have, with UUIDs"
                " that the policy allows."
            )
        if requires_tls(facts.last[candidate]):
            text += (
                f" {candidate} has require_secure_transport = ON: a channel from it needs"
                " SOURCE_SSL = 1 (else error 3159)."
            )
        if joining.ahead:
            text += f" {candidate} still has to receive {many(joining.ahead)} that {server} has."
        if joining.not_on_main:
            doubt += (
                f" {candidate} is not linked to the largest part of the cluster, which does not"
                f" have {many(joining.not_on_main)} that {server} has: decide first which of the"
                f" two {server} is to follow."
            )
        yield _on(
            facts, "J1", joining, text + doubt, likely=bool(joining.own or joining.ahead or doubt)
        )


def _allowed_extra(facts: ClusterFacts, joining: Joining) -> GtidSet:
    """Return what a server has beyond its candidate, under UUIDs that the policy allows."""
    readings = facts.fully_read[joining.server].last, facts.fully_read[joining.candidate].last
    beyond = readings[0].gtid_executed - readings[1].gtid_executed
    return GtidSet.union_of(beyond.from_uuid(each) for each in facts.policy.allowed_uuids)


def cannot_join_purged(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J2: every candidate has purged what the server needs.

    `likely` if the candidate has only received it, and does not log it: the candidate accepts the
    connection until it has applied that.
    """
    for joining in evaluate_parts(facts).joinings:
        if joining.purged and not (joining.extra or joining.lost):
            candidate, what = joining.candidate, many(joining.purged)
            text = (
                f"No channel links {joining.server} to the other servers, and it cannot join them:"
                f" {candidate} has purged {what} that it needs. The"
                " connection would be refused with error 1236."
                if joining.is_purged_now
                else f"No channel links {joining.server} to the other servers, and it cannot join"
                f" them: {candidate} does not log what it receives (log_replica_updates = OFF), and"
                f" counts {what} that it has received as purged when it has applied them. The"
                " connection is then refused with error 1236."
            )
            yield _on(facts, "J2", joining, text, likely=not joining.is_purged_now)


def cannot_join_diverged(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield J3: a server with transactions that no candidate has, or no single one has all of.

    The set is what no candidate has. If that is nothing, the server was a replica of several of
    them: it is what the best candidate would hide, and the finding is `likely`.
    """
    for joining in evaluate_parts(facts).joinings:
        if joining.extra:
            server, candidate = joining.server, joining.candidate
            text = (
                f"{server} has {many(_diverged_by(joining))} that {candidate} does not have and"
                " does not receive, and no channel links them."
                + _of_its_own(facts, joining)
                + content_text(facts.last[server], _diverged_by(joining))
                + _in_turn(joining)
                + f" {candidate} would accept the connection and hide the difference."
            )
            if joining.only_there:
                text += " Read the content first, and decide for each transaction whether it is"
                text += " needed."
            text += _elsewhere(facts, joining)
            if _have_nothing_in_common(facts, joining):
                text += (
                    " The two have no transaction in common: they may belong to two clusters. If"
                    " so, audit them separately."
                )
            if joining.purged:
                text += f" {candidate} has also purged {many(joining.purged)} that {server} needs."
            if joining.has_all:
                text += _REVERSED.format(server=server, candidate=candidate)
            doubt = _assigned_by_group(facts, joining) + _unread_apart(facts, joining)
            likely = joining.has_all or not joining.only_there or bool(doubt)
            yield _on(facts, "J3", joining, text + doubt, likely=likely)


def _unread_apart(facts: ClusterFacts, joining: Joining) -> str:
    """Return which servers of other parts may be the better candidate, as text; "" if none."""
    ends = {joining.server, joining.candidate}
    linked = {name for part in facts.islands if ends & {*part} for name in part}
    unread = sorted(facts.last.keys() - facts.fully_read.keys() - linked)
    if not unread:
        return ""
    return f" Not all facts of {', '.join(unread)} were read: it may be a better candidate."


def _other_contents(facts: ClusterFacts, joining: Joining) -> str:
    """Return that the logs show other transactions under one GTID, as text; "" if they do not."""
    contents = facts.snapshot.contents
    part = next(each for each in facts.islands if joining.candidate in each)
    apart: dict[str, list[Gtid]] = {}
    for each in contents.differences if contents is not None else ():
        ends = {each.source.server, each.replica.server}
        if joining.server in ends and is_above_info(each.difference):
            for other in ends & {*part} - {joining.server}:
                apart.setdefault(other, []).append(each.gtid)
    return "".join(
        f" But {joining.server} and {other} do not agree on the content of"
        f" {many(GtidSet.of(gtids))} (see E4 of this audit): no channel delivers these again, so"
        " the rows keep differing. Resolve E4 before it joins."
        for other, gtids in sorted(apart.items())
    )


def _diverged_by(joining: Joining) -> GtidSet:
    return joining.only_there or joining.extra


def _in_turn(joining: Joining) -> str:
    """Return what the candidate has beyond the server, as text; "" if nothing."""
    beyond = joining.missing | joining.own
    if not beyond:
        return ""
    return f" {joining.candidate} in turn has {many(beyond)} that {joining.server} does not have."


def _of_its_own(facts: ClusterFacts, joining: Joining) -> str:
    server, gtids = joining.server, _diverged_by(joining)
    uuid = facts.last[server].server_uuid
    if uuid is None or gtids != gtids.from_uuid(uuid) or _assigned_by_group(facts, joining):
        return ""
    return f" {server} committed them itself: it may have been the source before a failover."


def _assigned_by_group(facts: ClusterFacts, joining: Joining) -> str:
    """Return that the candidate's group commits under the same UUID, as text; "" if it does not."""
    uuid = uuid_of_group(group_name_of(facts.last[joining.candidate]))
    if uuid is None or not _diverged_by(joining).from_uuid(uuid):
        return ""
    return (
        f" The group of {joining.candidate} commits under the UUID {uuid} as well, and may assign"
        f" the same GTIDs to other transactions: then the sets become equal, and the data of"
        f" {joining.server} still differs."
    )


def _elsewhere(facts: ClusterFacts, joining: Joining) -> str:
    """Return which other servers have what the candidate would hide, as text; "" if none."""
    if not joining.elsewhere:
        return ""
    candidate, server = joining.candidate, joining.server
    others = [
        name
        for part in facts.islands
        if server not in part
        for name in part
        if joining.elsewhere & (facts.last[name].gtid_executed or GtidSet())
    ]
    has = "has" if len(others) == 1 else "have"
    what = "them"
    if joining.only_there:
        what = f"{many(joining.elsewhere)} that {server} has and {candidate} does not"
    return (
        f" {', '.join(others)} {has} {what}: {server} may have replicated from several servers. Let"
        " it replicate from each of them, by a channel of its own. Do not redo or undo these"
        " transactions."
    )


_REVERSED: Final = (
    " {server} also has everything that {candidate} and its replicas have. If {candidate} was"
    " detached from it (RESET REPLICA ALL) and no failover took place, nothing has diverged:"
    " {candidate} can replicate from {server}. Do not undo transactions on {server} before you know"
    " which of the two is the source."
)


def _have_nothing_in_common(facts: ClusterFacts, joining: Joining) -> bool:
    ours = facts.last[joining.server].gtid_executed
    theirs = facts.last[joining.candidate].gtid_executed
    return bool(ours and theirs) and not (ours or GtidSet()) & (theirs or GtidSet())


def _reset_doubt(facts: ClusterFacts, joining: Joining) -> str:
    """Return why the server may already hold the data that it would receive; "" if it does not."""
    server = facts.last[joining.server]
    if not may_have_rows(server, joining.missing):
        return ""
    schemas = server.history_evidence.schemas_count if server.history_evidence else None
    has = f" It has {counted(schemas, 'schema')} of its own." if schemas else ""
    return (
        f"{has} Its binary logs do not exclude RESET BINARY LOGS AND GTIDS. If it was reset, it has"
        " the rows already, and would execute the transactions a second time. Compare the data"
        " first."
    )


_BEFORE_ALL_IS_READ: Final = {
    "J1": ("add_servers", "attach"),
    "J2": ("add_servers",),
    "J3": ("add_servers",),
}


def _strategies(code: str, joining: Joining) -> tuple[str, ...] | None:
    """Return the strategies of a finding; None for those of its code."""
    if joining.unread:
        return _BEFORE_ALL_IS_READ[code]
    # What other servers have as well is not redone, and no clone is to replace the server's data.
    return () if code == "J3" and not joining.only_there else None


def _on(
    facts: ClusterFacts, code: str, joining: Joining, text: str, *, likely: bool = False
) -> Finding:
    unread = ", ".join(joining.unread)
    if joining.unread:
        text += (
            f" {joining.candidate}'s part replicates from {unread}, which gtid-audit did not read:"
            f" if that server replicates from {joining.server}, a channel links them after all. Add"
            " that server to the audit before you change anything."
        )
    return finding(
        facts,
        code,
        source=joining.candidate,
        replica=joining.server,
        gtid_set={"J1": joining.missing, "J2": joining.purged, "J3": _diverged_by(joining)}[code],
        grade=Grade.LIKELY if likely or joining.unread else Grade.PROVED,
        # Transactions that may be on their way are neither redone nor undone.
        severity=Severity.WARNING if joining.unread else None,
        strategies=_strategies(code, joining),
        proof=_proof(facts, joining)
        + (
            (evidence("sources that were not read", unread, facts.last[joining.candidate]),)
            if joining.unread
            else ()
        ),
        explanation=text,
    )


def _proof(facts: ClusterFacts, joining: Joining) -> tuple[Evidence, ...]:
    server, candidate = facts.last[joining.server], facts.first[joining.candidate]
    return (
        evidence("state", _state(facts, joining), server),
        evidence("channels between them", "none", server),
        evidence("missing", joining.missing | joining.own, server),
        evidence("missing and purged on the candidate", joining.purged, candidate),
        evidence("executed here only", joining.only_there, facts.first[joining.server]),
        *(
            [evidence("executed here and elsewhere", joining.elsewhere, server)]
            if joining.elsewhere
            else []
        ),
        evidence("in its binary logs", server.logged, server),
        evidence("schemas without MySQL's own", _schemas(server), server),
    )


def _schemas(server: ServerSnapshot) -> str:
    found = None if server.history_evidence is None else server.history_evidence.schemas_count
    return "unknown" if found is None else str(found)


def _state(facts: ClusterFacts, joining: Joining) -> str:
    """Return the state of the server; if it executed nothing, it is new only without a schema."""
    if facts.first[joining.server].gtid_executed:
        return joining.state
    return "without GTIDs" if _reset_doubt(facts, joining) else "new"


RULES: Rules = (
    can_join,  # J1
    cannot_join_purged,  # J2
    cannot_join_diverged,  # J3
    servers_not_linked,  # A7
)
