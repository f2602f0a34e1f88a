"""Manual instructions that replace the data of a server by a copy of another one.

1. What only the server has is named, and saved first; what its source has received and not applied
   is not run there as a script: it would be applied twice.
2. A server whose own GTIDs are not in the copy must not keep its server_uuid: it would use their
   numbers again, and servers that have them would skip the new transactions (E3, tried on 5.6.24).
3. manual_instructions.py has the rules for all instructions.
"""

import shlex
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from repair.model.replication_model import ModelServer
from repair.strategies.copy_commands import copying
from repair.strategies.copy_donors import CopyDonor, donor_of_copy, of_other_sources
from repair.strategies.instruction_context import Situation, attaching, in_order

_MEMBERS: Final = "performance_schema.replication_group_members"


def reclone(situation: Situation) -> str:
    """Return how to replace the data of one of two servers, and of which."""
    finding, servers = situation.finding, situation.model.servers
    replica = servers.get(finding.replica or "")
    donor = None if replica is None else donor_of_copy(situation, replica)
    elsewhere = GtidSet() if replica is None else of_other_sources(situation, replica)
    if donor is None and elsewhere:
        return (
            f"do NOT replace the data of {finding.replica} by a copy of {finding.source}: it also"
            f" has {elsewhere.shortened()} of its other sources, which {finding.source} does not"
            f" have, and no other server of this audit has both. Get what it is missing from"
            " another server if one has it (donor_refetch). Otherwise build it again from the data"
            " of each source"
        )
    if donor is None or replica is None:
        return (
            "replace the server's data with a backup or a clone of its source. Compare their GTID"
            " sets first: this deletes what only this server has"
        )
    if finding.source not in servers:  # the server that is copied is its source for now
        finding = replace(finding, source=donor.server.name)
        situation = replace(situation, finding=finding)
    return _replaced(situation, donor, replica)


def _replaced(situation: Situation, donor: CopyDonor, replica: ModelServer) -> str:
    """Return how to replace the data of a server; its source and its donor were read."""
    finding, here = situation.finding, replica.name
    source = situation.model[finding.source or ""]
    only_here = replica.executed - source.executed - donor.server.executed
    own = only_here.from_uuid(replica.server_uuid)
    remove = f"{situation.dialect.reset_replica} ALL"
    note = f"{donor.note}. To copy it, " if donor.note else ""
    attach = (
        f"{note}{copying(donor.server, replica, own=own)}. The copy may have the"
        f" channels of {donor.server.name}: on {here} run"
        f" {in_order(remove, *attaching(situation, donor.source.name))}. A server that replicates"
        f" from {here} needs the same if it is missing transactions, because {here} can no longer"
        " send them"
    )
    if len(replica.channels) > 1:
        attach += ", and configure its other channels again"
    if finding.code == "E4" and not own:
        named = " ".join(f"--server {shlex.quote(each)}" for each in (source.name, here))
        attach += (
            f". If you audit with --history or --out, run `gtid-audit history PLACE --forget"
            f" '{finding.gtid_set}' {named}` afterwards (PLACE: that file, or directory). Otherwise"
            " an audit that can no longer compare these GTIDs still reports the old difference"
        )
    if not only_here and finding.code == "E4":
        return (
            f"decide first which content is right: {here} has its own of"
            f" {finding.gtid_set.shortened()}, and loses it. Save it (`gtid-audit binlog show"
            f" '{finding.gtid_set}' SERVER`, with the DSN of {here}). Then {attach}"
        )
    if not only_here:
        return f"{attach}. Nothing is lost: {source.name} has all transactions of {here}"
    if finding.code == "E6":
        return (
            f"compare the data first: only {here} has {only_here.shortened()} in gtid_executed."
            f" The finding shows whether the rows are probably on {source.name}. Do not redo them"
            f" there before you have compared. If the rows are there, {attach}. Nothing is lost"
            f" then. If they are not, only {here} has them, and this would delete them"
        )
    return (
        f"do NOT restore {here} from {source.name} as it is: only {here} has"
        f" {only_here.shortened()}, and you would lose that data;"
        f" {_saving(situation, only_here, replica)}. Keep a copy of {here}'s data directory. Never"
        f" restore both servers: one of them must keep its data. Only then {attach}"
        f"{_numbers_used_again(situation, own, replica)}"
    )


def _numbers_used_again(situation: Situation, own: GtidSet, replica: ModelServer) -> str:
    """Return why a server must not keep its server_uuid, and who has to be cloned as well."""
    if not own:
        return ""
    text = (
        f". With its old server_uuid {replica.name} would use the numbers of {own.shortened()}"
        " again, and servers that have them would skip the new transactions, without an error"
    )
    ends = (situation.finding.source, replica.name)
    servers = situation.model.servers.values()
    others = [each.name for each in servers if each.name not in ends and each.executed & own]
    if others:
        text += f". {' and '.join(others)} also got them: clone these as well"
    return text


def join_group(situation: Situation) -> str:
    """Return how a server that left its group becomes a member again."""
    finding, servers = situation.finding, situation.model.servers
    here, donor = finding.replica, finding.source
    start = in_order("STOP GROUP_REPLICATION", "START GROUP_REPLICATION")
    join = f"on {here} run {start}; wait until {_MEMBERS} shows it ONLINE"
    if finding.code == "A7":
        return (
            f"{join}. Recovery needs an account (START GROUP_REPLICATION USER = …, or the channel"
            " group_replication_recovery)"
        )
    copy = (
        f"take a new backup of {donor} that includes its GTID set, or a new clone; stop {here};"
        " replace its data directory with the copy, but keep its own auto.cnf and its own"
        f" configuration file; start it; {join}"
    )
    replica, source = servers.get(here or ""), servers.get(donor or "")
    if finding.code == "J2" or replica is None or source is None:
        return copy
    only_here = replica.executed - source.executed
    return (
        f"do NOT replace the data of {here} yet: only {here} has {only_here.shortened()}, and you"
        f" would lose that data; {_saving(situation, only_here, replica)}. Keep a copy of {here}'s"
        f" data directory. Only then {copy}"
    )


def _saving(situation: Situation, only_here: GtidSet, replica: ModelServer) -> str:
    """Return how to save what only the replica has."""
    source, kept = situation.finding.source, only_here - replica.purged
    coming = _still_coming(situation, only_here, replica)
    if coming:
        return (
            f"{source} may still get {coming.shortened()} by replication, with its content. First"
            f" do what this plan says of that (E1, A7, or the channel of {source}), then audit and"
            f" plan again. Do not run the content on {source} as a script: the channel would apply"
            " it a second time"
        )
    if kept:
        return (
            f"save them first: `gtid-audit binlog show '{kept}' SERVER --redo --schema-from"
            f" SERVER` (SERVER is the DSN of {replica.name}). Decide whether to run that script on"
            f" {source} before you clone. Do not run it if {source} already has the rows, as it"
            " does after RESET BINARY LOGS AND GTIDS"
        )
    return (
        f"{replica.name} has purged them too, so their rows exist only in its tables: compare the"
        f" tables, and copy the rows that you need to {source} before you clone"
    )


def _still_coming(situation: Situation, gtids: GtidSet, replica: ModelServer) -> GtidSet:
    """Return what the source of a finding has received of these, or may still be sent.

    The replica refuses a connection (1236) if it has purged what the source does not have.
    """
    source = situation.model.servers.get(situation.finding.source or "")
    if source is None:
        return GtidSet()
    received = GtidSet.union_of(each.retrieved - each.passed for each in source.channels)
    sent = GtidSet.union_of(
        gtids - replica.purged - each.bypassed - each.passed - each.dropped
        for each in source.channels
        if each.source == replica.name and replica.purged <= source.executed
    )
    return ((received - source.executed) & gtids) | sent
