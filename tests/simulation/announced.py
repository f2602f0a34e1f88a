"""What a plan with choices says that it loses, and the harm that it does beyond that.

Loss, double work, older rows and stopped threads are found in the true world: it is compared with
the same world at rest without the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from repair.model.actions import (
    AppendPurged,
    InjectEmpty,
    MakeRowsAlike,
    RedoTransactions,
    ResetAndPurge,
    UndoRows,
)
from repair.repair_plan import Plan
from repair.strategies.strategy_registry import LEAVING_OUT
from tests.simulation.oracles import Violation, follows_its_source, last_writer
from tests.simulation.plan_oracles import (
    EMPTY,
    cancel_out,
    has_other_content,
    is_in_order,
    is_refusal_told,
    looks_done,
    met_hidden_work,
    stands_beside,
)
from tests.simulation.reading import gtids
from tests.simulation.state import EXTRA, Channel, Gtid, Key, Server, Transaction, World, gtid_text
from tests.simulation.toy_table import key_of, value_of

WARNED = "may stop the applier or overwrite rows"
OVERWRITES = "what waits may overwrite rows"
LEAVES_OUT = "Later changes of the rows that differ then stop an applier"
CONNECTS = "the receiver of {server} connects again to {source}:"
Kind = tuple[str, str]  # of the violations: oracle, and the strategies of the plan


@dataclass(frozen=True, slots=True)
class Announced:
    """What a plan says that it loses."""

    declared: GtidSet  # executed without their content
    undone: GtidSet
    rows: frozenset[Key]  # written by steps
    versions: frozenset[tuple[Key, int | None]]  # that steps give to rows, like those of a source
    is_warned: bool  # fetching may stop an applier or overwrite rows
    overwrites: bool  # what waits for a channel that a step starts may overwrite rows
    is_refused: bool  # a script refused half-way and said so: a channel may be stopped on purpose
    redone: GtidSet
    unfit: tuple[
        str, ...
    ]  # why what waits may overwrite rows, or stop the applier, of which server
    is_doubted: bool  # what one server has empty under a GTID may have content on another
    known: GtidSet  # executed on a server of the plan when it was read
    seen: frozenset[str]  # servers that the plan knows; each plan says that it considers no other
    changed: frozenset[str]  # a warning is about these and what receives from them
    aligned: GtidSet  # rows that did not fit these are made as before them, and they are applied
    warnings: tuple[str, ...]

    def and_also(self, other: Announced) -> Announced:
        """Return what this plan or another one says."""
        return Announced(
            self.declared | other.declared,
            self.undone | other.undone,
            self.rows | other.rows,
            self.versions | other.versions,
            self.is_warned or other.is_warned,
            self.overwrites or other.overwrites,
            self.is_refused or other.is_refused,
            self.redone | other.redone,
            self.unfit + other.unfit,
            self.is_doubted or other.is_doubted,
            self.known | other.known,
            self.seen | other.seen,
            self.changed | other.changed,
            self.aligned | other.aligned,
            self.warnings + other.warnings,
        )


def announced(plan: Plan, choices: Mapping[str, str], *, is_refused: bool) -> Announced:
    """Read off a plan what it gives up: by its choices, and in its warnings."""
    declaring = {
        each.finding_id
        for each in plan.answered
        if choices.get(each.finding_id) in {*LEAVING_OUT, "undo_on_replica"}
    }
    about = [step.effect for step in plan.steps if declaring & {*step.finding_ids}]
    declared = GtidSet.union_of(
        each.gtids for each in about if isinstance(each, InjectEmpty | AppendPurged | ResetAndPurge)
    )
    effects = [step.effect for step in plan.steps]
    undone = GtidSet.union_of(each.gtids for each in effects if isinstance(each, UndoRows))
    rows = frozenset(
        key_of(row)
        for each in effects
        if isinstance(each, UndoRows | MakeRowsAlike)
        for row in each.rows
    )
    versions = frozenset(
        (key_of(row), value_of(row.source))
        for each in effects
        if isinstance(each, MakeRowsAlike)
        for row in each.rows
    )
    is_warned = any(WARNED in text for text in plan.warnings)
    overwrites = any(OVERWRITES in text for text in plan.warnings)
    redone = GtidSet.union_of(each.gtids for each in effects if isinstance(each, RedoTransactions))
    aligned = GtidSet.union_of(
        each.until_executed for each in effects if isinstance(each, MakeRowsAlike)
    )
    is_doubted = any(EMPTY in text for text in plan.warnings)
    known = GtidSet.union_of(GtidSet.parse(each.gtid_executed) for each in plan.assumed)
    seen = frozenset(each.server for each in plan.assumed)
    changed = frozenset(each.server for each in effects)
    return Announced(
        declared=declared,
        undone=undone,
        rows=rows,
        versions=versions,
        is_warned=is_warned,
        overwrites=overwrites,
        is_refused=is_refused,
        redone=redone,
        unfit=tuple(text for text in plan.warnings if OVERWRITES in text),
        is_doubted=is_doubted,
        known=known,
        seen=seen,
        changed=changed,
        aligned=aligned,
        warnings=plan.warnings,
    )


def harm(before: World, after: World, said: Announced, kind: Kind) -> Iterator[Violation]:
    """Compare the world with what it would be without the plan; what the plan says is allowed."""
    for name, server in after.servers.items():
        was = before[name]
        gone = [
            made.gtid
            for made, undo in was.applied
            if undo and was.works[made.work] and not server.works[made.work]
        ]
        unsaid = [each for each in gone if not gtids([each]) <= said.undone]
        if unsaid:
            yield Violation(*kind, f"{name} loses the work of {gtid_text(unsaid[0])}")
        is_reached = bool({name, *after.upstream(name)} & said.changed)
        if not (said.is_warned and is_reached):
            yield from _doubled(before, after, server, said, kind)
        yield from _unneeded(before, was, server, said, kind)


def _doubled(
    before: World, after: World, server: Server, said: Announced, kind: Kind
) -> Iterator[Violation]:
    """Report work that was applied twice, older rows, and threads that stopped.

    Where an applier stopped at rows, a selected step may make them as before the transaction. What
    a forgotten history did under its GTID is taken back by that step: it is applied once more, to
    rows as its source found them, and nothing is doubled. What follows it is still compared.
    Nor is it where a warning names these transactions, of which rows were changed since, and that
    they are applied now. A server that was not read and was reset takes again what reaches it: each
    plan says so of those that it does not consider.
    """
    was = before[server.name]
    told = GtidSet.union_of(_applied_to_changed_rows(said, server.name))
    twice = {
        made.work: made.gtid
        for made, undo in server.applied
        if undo
        and not gtids([made.gtid]) <= said.aligned | told
        and not (server.name not in said.seen and _was_reset(before, server.name, made.gtid))
        and server.works[made.work] > max(1, was.works[made.work])
    }
    if twice and not (cancel_out(before, server, [*twice]) or is_in_order(before, was, twice)):
        text = f"{server.name} applies {gtid_text(next(iter(twice.values())))} twice"
        yield Violation(*kind, text)
    for key, value in server.rows.items() if not said.overwrites else ():
        if key in before.drifted and not _written_by(server, key) <= said.known:
            continue  # no reading shows the row, nor what was committed since: it comes anyway
        if key not in said.rows and value and value < was.rows.get(key, value):
            if follows_its_source(before, server, key):
                continue
            if server.name not in said.seen:
                continue  # no reading shows it, and each plan says that it may be overwritten
            last = last_writer(was, key)
            if last is not None and has_other_content(before, was, last):
                continue  # E4: the sets agree, and no contents were compared
            if _written_by(was, key) & said.declared:
                continue  # left out by choice: the plan says that later changes replace it
            text = f"{server.name}: {key} has an older version than before"
            yield Violation(*kind, text)
            break
    for channel in server.channels if server.name in said.seen else ():
        old = was.channel(channel.name)
        if old is not None and old.runs and not channel.runs:
            if _is_announced(before, server, channel, said):
                continue
            if met_hidden_work(before, after, server.name, channel.failed):
                continue
            if stands_beside(was, channel):
                continue
            reasons = f"since on {server.name}: ", f"the applier of {server.name} may stop"
            if channel.failed and any(why in each for each in said.unfit for why in reasons):
                continue
            if channel.failed and _was_not_read(channel.failed, server.name, said):
                continue
            if _has_more_by_what_was_hidden(after, server, channel, old):
                continue
            error = channel.applier_error[1] or channel.receiver_error[1] or "stopped"
            text = f"{server.name}: {channel.name!r} stops: {error}"
            yield Violation(*kind, text)


def _has_more_by_what_was_hidden(
    after: World, server: Server, channel: Channel, old: Channel
) -> bool:
    """Return whether a source refuses a receiver for what it had received last (5.6).

    No set of 5.6 shows that. The source had lost it before the plan, and refuses every connection
    once it is applied.
    """
    if channel.receiver_error[1] != EXTRA or channel.source not in after.servers:
        return False
    source = after[channel.source]
    hidden = {each.transaction.gtid for each in old.relay} - old.retrieved
    more = {gtid for gtid in server.executed - source.executed if gtid[0] == source.uuid}
    return more <= hidden


def _was_not_read(made: Transaction, name: str, said: Announced) -> bool:
    """Return whether the plan says that a server will apply a transaction that was not read."""
    unread = rf"content of (\S+(?:, \S+)*), which {name} would apply, has not been read"
    listed = (GtidSet.parse(found) for text in said.unfit for found in re.findall(unread, text))
    return any(gtids([made.gtid]) <= each for each in listed)


def _was_reset(world: World, name: str, gtid: Gtid) -> bool:
    """Return whether RESET BINARY LOGS AND GTIDS removed a GTID from what a server has executed."""
    return world.absence.get((name, gtid)) == "reset"


def _applied_to_changed_rows(said: Announced, name: str) -> Iterator[GtidSet]:
    """Yield the GTIDs of such warnings, where they list all of them."""
    listed = r"rows of ((?:[^\s,]+, )*[^\s,]+) were changed since on"
    for text in said.unfit:
        for found in re.findall(rf"{listed} {name}: applied now", text):
            yield GtidSet.parse(found)
        if f"replication runs on {name}, " in text and "may apply rows a second time" in text:
            for found in re.findall(r"rows of ((?:[^\s,]+, )*[^\s,]+) may not fit", text):
                yield GtidSet.parse(found)
    for text in said.warnings:
        if f"if {name} had " in text and "they come back" in text:
            yield said.redone
            fetched = re.match(rf"if {name} had (.+) before and lost these GTIDs", text)
            yield GtidSet.parse(fetched[1]) if fetched else GtidSet()


def _written_by(server: Server, key: Key) -> GtidSet:
    """Return the GTID of the transaction that wrote a row last; empty if none did."""
    last = last_writer(server, key)
    return GtidSet() if last is None else gtids([last.gtid])


def _is_announced(before: World, server: Server, channel: Channel, said: Announced) -> bool:
    """Return whether a channel stops for a reason that the plan's text has.

    What a plan leaves out or takes back by choice is missing for later changes of the same rows. A
    source that was not read may refuse a receiver that a step stops and starts again. Rows that a
    step makes like those of a source are not written below its server: where a replica has other
    rows under equal sets (a GTID given by hand), and no contents were compared, nothing shows it.
    """
    connects = CONNECTS.format(server=server.name, source=channel.source)
    if channel.receiver_error[0] and any(connects in text for text in said.warnings):
        return channel.source not in said.seen
    if not channel.applier_error[1] and not channel.receiver_error[0]:
        return said.is_refused
    if channel.failed is None:
        return is_refusal_told(before, server, channel, said.warnings)
    if channel.failed.keys & said.rows and any(
        f"does not change the replicas of {each}:" in text and "may stop their appliers" in text
        for each in before.upstream(server.name) - {server.name}
        for text in said.warnings
    ):
        return True
    left_out = said.declared | said.undone
    keys = {
        key
        for server in before.servers.values()
        for made, _ in server.applied
        if gtids([made.gtid]) <= left_out
        for key in made.keys
    }
    return bool(channel.failed.keys & keys)


def _unneeded(
    before: World, was: Server, server: Server, said: Announced, kind: Kind
) -> Iterator[Violation]:
    """Report GTIDs that are executed now, without their data, and were not announced as such."""
    for gtid in sorted(server.executed - was.executed):
        if gtids([gtid]) <= said.declared | said.undone or gtid in was.executed:
            continue
        found = _made_under(before, gtid, said.seen)
        if any(each.changes and _versions(each) <= said.versions for each in found):
            continue  # a step has written its rows as it left them
        mine = server.logged_version(gtid)
        if said.is_doubted and mine is not None and mine.is_empty:
            continue
        works = {each.work for each in found}
        if any(each.changes and looks_done(before, server, each) for each in found):
            continue  # a default: it was skipped, and later ones left its rows alike
        if _is_of_unseen(before, server, gtid, said.seen):
            continue
        if works and not works & {made.work for made, _ in server.applied}:
            text = f"{gtid_text(gtid)} is executed on {server.name}, its data is not there"
            yield Violation(*kind, text)
            return


def _is_of_unseen(before: World, server: Server, gtid: Gtid, seen: frozenset[str]) -> bool:
    """Return whether a server outside of the plan made the work that a server has under a GTID.

    Its transactions come through a channel that the plan starts by choice: two servers have made
    two transactions under the GTID, and the plan says that it considers no other.
    """
    mine = {made.work for made, _ in server.applied if made.gtid == gtid}
    known = {made.work for made in _made_under(before, gtid, seen)}
    return bool(mine) and not mine & known


def _versions(made: Transaction) -> set[tuple[Key, int | None]]:
    return {(each.key, each.new) for each in made.changes}


def _made_under(world: World, gtid: Gtid, seen: frozenset[str]) -> list[Transaction]:
    """Return the transactions that changed rows under a GTID, on any server that the plan knows.

    What another server has under the GTID is no evidence: each plan says that it considers no other.
    """
    return [
        made
        for server in world.servers.values()
        for made, undo in server.applied
        if made.gtid == gtid and undo and server.works[made.work] and server.name in seen
    ]
