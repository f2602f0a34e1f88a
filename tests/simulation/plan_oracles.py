"""What must hold when a plan is run on the true world: in full, late, interrupted.

7. A plan made without choices loses no work that a client was told of, applies none twice, puts no
   older version over a newer one, stops no thread, and declares no data unneeded. The audit
   afterwards shows nothing above info that neither the first audit nor the plan showed, and that
   would not be there without the plan as well.
8. The same holds when the world moves on between planning and running (guards may refuse), and when
   the run stops after any step; planning again then reaches the same sets.

What the plan is compared with is always the same world at rest, without the plan: a conflict that
replication runs into by itself, or a fault that happened while the servers were read, is no work of
the plan.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gtid import GtidSet
from repair.model.actions import (
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    ResetAndPurge,
    StartChannel,
)
from repair.planner import plan_repair
from repair.repair_plan import Plan
from tests.simulation import replication as act
from tests.simulation.contents import contents_of
from tests.simulation.evidence import log_evidence
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import (
    Truth,
    Violation,
    above_info,
    follows_its_source,
    is_forgotten,
    is_own_row,
    last_writer,
)
from tests.simulation.plan_actions import NotSimulated, run_step
from tests.simulation.plan_guards import Refused, check_guards
from tests.simulation.reading import gtids, members_of, read
from tests.simulation.state import (
    COPY,
    EXTRA,
    PERMISSIVE,
    Channel,
    Gtid,
    Key,
    Server,
    Transaction,
    World,
    gtid_text,
)
from tests.simulation.steps import STEPS, Line, perform
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade
from topology.readings.snapshot import ClusterSnapshot

EMPTY = "would execute it without that content"

_PLANS_AFTER_A_STOP = 2  # the first of them may ask to plan again once it has run
_AGAIN_UNSEEN = "After RESET BINARY LOGS AND GTIDS it may be applied there a second time"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a plan was run, and the world then."""

    world: World
    done: int
    refused: str = ""


def plan_of(truth: Truth, world: World, snapshot: ClusterSnapshot, audit: ClusterAudit) -> Plan:
    """Make the plan that the product makes without choices; of the history's own audit once."""
    is_own = world is truth.world and snapshot is truth.snapshot
    if is_own and truth.plan is not None:
        return truth.plan
    evidence = log_evidence(world, snapshot, audit)
    plan = plan_repair(snapshot, audit, evidence=evidence, policy=truth.policy)
    if is_own:
        truth.plan = plan
    return plan


def look_again(
    truth: Truth, world: World, *, compares: bool = False
) -> tuple[ClusterSnapshot, ClusterAudit]:
    """Read and audit a world that stands still, as the auditor of this history reads.

    To plan again the same audit is made, so it `compares` contents if that of the first plan did.
    What a plan left out has two contents ever after, as it says: behind a plan nothing is compared.
    """
    reading = replace(truth.reading, moving=False, between=())
    looked_at = world.copy()
    snapshot = with_answers(looked_at, reading, read(looked_at, reading), truth.policy)
    contents = contents_of(looked_at, reading, snapshot) if compares else None
    return snapshot, audit_cluster(snapshot.with_contents(contents), truth.policy)


def run(
    world: World,
    plan: Plan,
    snapshot: ClusterSnapshot,
    *,
    begin: int = 0,
    steps: int | None = None,
) -> Outcome:
    """Run the steps of a plan from one to another, with guards, and let the world rest."""
    made = world.copy()
    act.rest(made)
    for count, step in enumerate(plan.steps):
        if count < begin:
            continue
        if steps is not None and count >= steps:
            return Outcome(made, count)
        try:
            check_guards(made, snapshot, step)
            run_step(made, step)
        except Refused as refusal:
            return Outcome(made, count, str(refusal))
    return Outcome(made, len(plan.steps))


def plans(truth: Truth, snapshot: ClusterSnapshot, audit: ClusterAudit) -> Iterator[Violation]:
    """7 and 8, for the plan of one audit."""
    if not above_info(audit):
        return
    plan = plan_of(truth, truth.world, snapshot, audit)
    if not plan.steps:
        return
    codes = codes_of(plan)
    try:
        full = run(truth.world, plan, snapshot)
        found = harm(
            truth.rested,
            full.world,
            codes,
            "plan",
            injected=_injected(plan),
            seen=_seen(truth, plan),
            unread=truth.unread,
            goes_on=_goes_on(plan),
            warnings=plan.warnings,
        )
        yield from but_for_what_is_new(truth, full.world, found)
        if not full.refused:
            yield from _afterwards(truth, full.world, plan, audit)
        yield from _interrupted(truth, plan, snapshot, audit, full)
        yield from _late(truth, plan, snapshot, audit, full.world)
    except NotSimulated:
        return


def _seen(truth: Truth, plan: Plan) -> tuple[str, ...]:
    """Return the servers that a plan considers: it names those of which it knows nothing."""
    lines = [each for each in plan.warnings if each.startswith("nothing is known of ")]
    unknown = {word.strip(",") for each in lines for word in each.partition(":")[0].split()}
    return tuple(name for name in truth.reading.visible if name not in unknown)


def codes_of(plan: Plan) -> str:
    """Return the codes of the findings that the steps of a plan answer."""
    return "+".join(sorted({each.code for each in plan.answered if each.steps}))


def _injected(plan: Plan) -> GtidSet:
    """Return the GTIDs that a plan declares executed without their content."""
    return GtidSet.union_of(
        step.effect.gtids
        for step in plan.steps
        if isinstance(step.effect, InjectEmpty | AppendPurged | ResetAndPurge)
    )


def _goes_on(plan: Plan) -> GtidSet:
    """Return what a plan injects where the rows are, and says that others may lack the rows."""
    is_said = any("and does not have the rows never gets them" in each for each in plan.warnings)
    return _injected(plan) if is_said else GtidSet()


def harm(
    before: World,
    after: World,
    codes: str,
    oracle: str,
    *,
    injected: GtidSet,
    seen: Collection[str] = (),
    unread: Collection[str] = (),
    goes_on: GtidSet,
    warnings: Collection[str] = (),
) -> Iterator[Violation]:
    """Compare the world with what it would be without the plan.

    Data that only a server outside of `seen` has under a GTID is no evidence: each plan says that
    it considers no others. Two servers have made two transactions under that GTID. Nor is what the
    plan says of replicas outside of `seen`: `goes_on` reaches them without the rows, what they
    changed themselves may be overwritten, and what a RESET removed from their sets comes again.
    """
    for name, server in after.servers.items():
        was = before[name]
        gone = [work for work, count in was.works.items() if count and not server.works[work]]
        if gone:
            yield Violation(oracle, codes, f"{name} loses the work of {len(gone)} transactions")
        is_said = any(f"if {name} had " in each and "they come back" in each for each in warnings)
        is_unseen = name not in seen and any(_AGAIN_UNSEEN in each for each in warnings)
        twice = [
            work
            for work, count in server.works.items()
            if count > max(1, was.works[work])
            and not (is_said and _was_undone(before, was, work))
            and not (is_unseen and _lost_its_gtid(was, work))
        ]
        if twice and not cancel_out(after, server, twice):
            yield Violation(oracle, codes, f"{name} applies {_named(server.applied, twice)} twice")
        older = _overwritten(was, server, before)
        is_told = bool(seen) and name not in seen and older and is_own_row(was, older)
        if older and any(f"what {name} has from other sources than" in each for each in warnings):
            is_told = not is_own_row(was, older)  # changed by another source, and changed back
        if older in before.drifted and any("it applies DDL" in each for each in warnings):
            is_told = True  # the table was made by hand, and is changed as the plan says
        comes_back = any("they come back" in each for each in warnings)
        if older == act.TABLE and comes_back and older not in was.rows:
            # Skipped, and dropped since. Where its source has one again, it comes back, and below.
            is_told = any(older in each.rows for each in before.servers.values())
        if older and not is_told and not follows_its_source(before, server, older):
            yield Violation(oracle, codes, f"{name}: {older} has an older version than before")
        for gtid in sorted(server.executed - was.executed):
            versions = _data_under(before, gtid, seen or before.servers)
            if any(
                server.works[each.work] or looks_done(before, server, each) for each in versions
            ):
                continue
            if not versions:
                continue
            if seen and name not in seen and gtids([gtid]) <= goes_on:
                continue
            if gtids([gtid]) <= injected:
                if any(_is_net(before, was, each, injected) for each in versions):
                    continue
                text = f"{gtid_text(gtid)} is declared unneeded on {name}, its data is not there"
                yield Violation(oracle, codes, text)
                break
        for channel in server.channels:
            old = was.channel(channel.name)
            if old is not None and old.runs and not channel.runs:
                if met_hidden_work(before, after, name, channel.failed):
                    continue
                if stands_beside(was, channel):
                    continue
                if seen and name not in seen and channel.failed is not None:
                    # No reading shows its rows, and each plan says that it does not consider it.
                    continue
                error = channel.applier_error[1] or channel.receiver_error[1] or "stopped"
                if is_refusal_told(before, server, channel, warnings):
                    continue
                if error == COPY and (name in unread or (seen and name not in seen)):
                    continue  # nothing shows that it has the server_uuid of the one that starts
                yield Violation(oracle, codes, f"{name}: {channel.name!r} stops: {error}")


def _lost_its_gtid(server: Server, work: int) -> bool:
    """Return whether a server has applied a transaction and no longer has its GTID (a RESET)."""
    return any(made.work == work and made.gtid not in server.executed for made, _ in server.applied)


def _was_undone(before: World, server: Server, work: int) -> bool:
    """Return whether work that no log shows changed the same rows later.

    Its only record was removed by a RESET, or it was never logged.
    """
    applied = [made for made, _ in server.applied]
    places = [at for at, made in enumerate(applied) if made.work == work]
    if not places:
        return False
    keys = applied[places[-1]].keys
    if keys & before.drifted:
        return True
    later = applied[places[-1] + 1 :]
    return any(made.keys & keys and is_forgotten(before, {made}) for made in later)


def is_refusal_told(
    before: World, server: Server, channel: Channel, warnings: Iterable[str]
) -> bool:
    """Return whether a source refuses GTIDs that a server sent which the plan names as not read.

    Its warning says that it may send GTIDs of this source, and that the source then refuses them.
    Or one says that the source's gtid_mode was not read, and what the source does unless it is ON.
    """
    source = before[channel.source]
    if channel.receiver_error[1] == PERMISSIVE:
        return any(
            f"the settings of {source.name} were not read: unless" in each for each in warnings
        )
    beyond = {each for each in server.executed if each[0] == source.uuid} - source.executed
    told = [
        each
        for each in warnings
        if f"{source.name} then refuses the receiver of {server.name} " in each
    ]
    senders = {
        name
        for name in {server.name, *before.upstream(server.name)}
        if any(each.startswith(f"{name}:") for each in told)
    }
    if channel.receiver_error[1] != EXTRA or not beyond:
        return False
    return any(beyond <= before[name].executed for name in senders)


def cancel_out(world: World, server: Server, works: list[int]) -> bool:
    """Return whether transactions that were applied twice left no trace, as an INSERT and its DELETE.

    The rows were as before the first of them, no thread stopped, and they end like the source's.
    The other one may have come a second time without the plan as well.
    """
    again = {work for work, count in server.works.items() if count > 1}.union(works)
    keys = {key for made, undo in server.applied if made.work in again for key, _ in undo}
    sources = [world[each.source] for each in server.channels if each.source in world.servers]
    alike = (all(each.rows.get(key) == server.rows.get(key) for key in keys) for each in sources)
    return len(again) > 1 and bool(sources) and all(alike)


def is_in_order(world: World, server: Server, works: Iterable[int]) -> bool:
    """Return whether transactions come again to rows as their origin left them just before each.

    What a RESET made forgotten has come a second time before the plan, without it; with the ones
    that follow, the rows go through the same states as on the origin.
    """
    again = {*works}
    for made, undo in server.applied:
        if made.work not in again or made.origin not in world.servers:
            continue
        own = world[made.origin].applied
        for key, _ in undo:
            writers = [each.work for each, keys in own if any(key == one for one, _ in keys)]
            if made.work not in writers:
                return False
            earlier = writers[: writers.index(made.work)]
            last = last_writer(server, key)
            if last is None or last.work not in earlier[-1:]:
                return False
    return True


def stands_beside(was: Server, channel: Channel) -> bool:
    """Return whether another applier of the server stops at the same transaction without the plan.

    Two channels bring it, and the server cannot apply it: the plan changes nothing about that.
    """
    return channel.failed is not None and any(
        other.failed is not None and other.failed.gtid == channel.failed.gtid
        for other in was.channels
        if other.name != channel.name
    )


def met_hidden_work(before: World, after: World, name: str, failed: Transaction | None) -> bool:
    """Return whether an applier met what was different before, by work that no set shows.

    A GTID with two contents, a change with sql_log_bin=0, or work that a RESET of its server removed
    from the only log that had it. Only where rows could not be compared, because what arrived holds
    a statement, or a channel on the way has a filter: the plan says so. The difference was there without the plan, no set shows
    it, and the audit compared no contents: the start in the order of the source's log is what the
    operator would do, and uncovers it.
    """
    if failed is None:
        return False
    if {act.VIEW, act.TABLE} & failed.keys & before.drifted:
        return True  # no row: the plan names the DDL that it applies
    sent = set[Gtid]().union(*(server.executed for server in after.servers.values()))
    new = sent - before[name].executed
    works = [each.transaction for each in before.acknowledged]
    on_the_way = {name, *before.upstream(name)}
    is_filtered = any(path.ignored_keys for each in on_the_way for path in before[each].channels)
    if not is_filtered and not any(made.has_statements and made.gtid in new for made in works):
        return False
    if failed.keys & before.drifted:
        return True
    here = {made.work for made, _ in before[name].applied}
    elsewhere = {made for server in before.servers.values() for made, _ in server.applied}
    missing = (each for each in elsewhere if each.work not in here and each.keys & failed.keys)
    if any(is_forgotten(before, {each}) for each in missing):
        return True
    counts = Counter(made.gtid for made in {made.work: made for made in works}.values())
    two = {
        gtid
        for gtid in before[name].executed
        # Given by hand; or again after a crash, where logs hold no commit times that show it.
        if gtid in before.by_hand or (counts[gtid] > 1 and before[name].version < act.MODERN)
    }
    return any(made.gtid in two and made.keys & failed.keys for made in works)


def _overwritten(was: Server, server: Server, world: World) -> Key | None:
    """Return a row over which a transaction was applied that is older than what was there.

    Not one that is as it was: older ones that make and delete it again leave nothing of themselves.
    Nor one of which the sets agree, because the GTID of the newer one has another content elsewhere.
    """
    newest: dict[Key, int] = {}
    for made, undo in was.applied:
        if not has_other_content(world, was, made):
            for key, _ in undo:
                newest[key] = max(newest.get(key, 0), made.work)
    for made, undo in server.applied:
        if not was.works[made.work]:
            for key, _ in undo:
                is_changed = server.rows.get(key) != was.rows.get(key)
                if is_changed and made.work < newest.get(key, 0):
                    return key
    return None


def has_other_content(world: World, server: Server, made: Transaction) -> bool:
    """Return whether a GTID was given by hand, here or elsewhere, and other work has it there.

    The sets agree. An audit that compares no contents sees nothing of what a server has under it.
    """
    if made.gtid not in world.by_hand:
        return False
    works = {
        each.work
        for other in world.servers.values()
        for each, _ in other.applied
        if each.gtid == made.gtid
    }
    return len(works) > 1 or world.by_hand[made.gtid] != server.name


def _named(applied: list, works: list[int]) -> str:  # type: ignore[type-arg]
    return ", ".join(sorted({gtid_text(made.gtid) for made, _ in applied if made.work in works}))


def looks_done(before: World, server: Server, made: Transaction) -> bool:
    """Return whether rows are as a transaction left them, and no other transaction can change that.

    As behind a GTID with two contents: the INSERT was skipped, so the DELETE finds nothing to do.
    Or later ones of the same log have written them since.
    """
    if all(_is_written_later(before, server, made, key) for key in made.keys):
        return True
    others = (
        each
        for other in before.servers.values()
        for each, _ in other.applied
        if each.keys & made.keys
    )
    holders = [other for other in before.servers.values() if other.works[made.work]]
    anywhere = set[Gtid]().union(*(other.executed for other in before.servers.values()))
    still_open = [each for each in others if each.gtid in anywhere - server.executed]
    if still_open:  # all of them later: the rows are as this one left them
        left = {change.key: change.new for change in made.changes}
        is_after = all(server.rows.get(key) == value for key, value in left.items())
        return is_after and min(each.work for each in still_open) > made.work
    return any(
        all(server.rows.get(key) == other.rows.get(key) for key in made.keys) for other in holders
    )


def _is_net(before: World, was: Server, made: Transaction, injected: GtidSet) -> bool:
    """Return whether rows were as all that is injected left them on a server that has it.

    As behind a filter that kept an INSERT and its DELETE from the server: nothing is left out.
    """
    for holder in before.servers.values():
        under = [each for each, undo in holder.applied if undo and gtids([each.gtid]) <= injected]
        left = {change.key: change.new for each in under for change in each.changes}
        if holder.works[made.work] and all(
            key in left and was.rows.get(key) == left[key] for key in made.keys
        ):
            return True
    return False


def _is_written_later(before: World, server: Server, made: Transaction, key: Key) -> bool:
    """Return whether what wrote a row last on a server is behind a transaction where that was made."""
    writers = [each for each, undo in server.applied if key in {name for name, _ in undo}]
    if not writers:
        return False
    for other in before.servers.values():
        order = {each.work: at for at, (each, undo) in enumerate(other.applied) if undo}
        if made.work in order and order.get(writers[-1].work, -1) > order[made.work]:
            return True
    return False


def _data_under(world: World, gtid: Gtid, seen: Collection[str]) -> list[Transaction]:
    """Return the transactions that clients committed under a GTID, if they changed rows.

    A server that was reset may have used a GTID twice: the last one is what a plan can read. Two
    servers may have two contents: a third one has what its own source has, or what the other has.
    Where a server has logged it empty, no other log shows data that a session made under it on a
    server that is not its origin and has purged it, or sends nothing by GTID (ON_PERMISSIVE). Nor
    is what a server outside of `seen` made under a GTID by hand, wherever it arrives later.
    """
    found = []
    logged = [each.logged_version(gtid) for each in world.servers.values() if each.name in seen]
    is_empty = any(each is not None and each.is_empty for each in logged)
    for server in world.servers.values():
        if gtid not in server.executed or server.name not in seen:
            continue
        is_hidden = server.uuid != gtid[0] and (gtid in server.purged or server.permissive)
        if is_empty and is_hidden:
            continue
        is_given = gtid in world.by_hand
        under = [(made, undo) for made, undo in server.applied if made.gtid == gtid]
        found += [
            made
            for made, undo in under[-1:]
            if undo and server.works[made.work] and not (is_given and made.origin not in seen)
        ]
    return found


def _afterwards(truth: Truth, after: World, plan: Plan, audit: ClusterAudit) -> Iterator[Violation]:
    _, again = look_again(truth, after)
    _, without = look_again(truth, truth.rested)
    known: dict[str, GtidSet] = {}
    for one in (*audit.findings, *without.findings):
        known[one.id] = known.get(one.id, GtidSet()) | one.gtid_set
    announced = {each.finding_id for each in plan.afterwards}
    answered = {each.finding_id for each in plan.answered}
    seen = {one.id: one.gtid_set for one in audit.findings}
    for one in above_info(again):
        if one.id in announced or _met_what_was_not_committed(truth, after, one):
            continue
        if one.code in ("A1", "A2", "A3") and (
            _met_hidden(truth, after, one)
            or _met_statement(truth, plan, after, one)
            or _met_what_two_bring(plan, after, one)
            or _met_what_was_empty(plan, one)
            or _met_an_unlogged_change(truth, plan, after, one)
        ):
            continue
        if one.code == "A4" and (
            _waited_for_a_copy(truth, one)
            or _is_refused_as_told(after, plan, one)
            or (one.source, "settings") in truth.reading.unread  # whether it has a log
        ):
            continue
        torn = {each.replica or each.source for each in audit.findings if each.code == "U2"}
        if torn & {one.source, one.replica}:
            continue  # "nothing is known of" a server that was restarted or reset while it was read
        if one.code[0] == "J" and any(
            (each.code, each.replica) == (one.code, one.replica) for each in audit.findings
        ):
            continue  # of an unlinked server, compared with another one of those that are linked
        if one.code == "E4" and any(
            (each.code, each.replica) == ("U1", one.replica) for each in audit.findings
        ):
            continue  # its settings were not read: whether it logs what it receives is not known
        if one.code == "J1" and any(
            (each.code, each.replica) == ("J3", one.replica) and each.id in announced
            for each in audit.findings
        ):
            continue  # its own work, announced as what keeps it from joining, has arrived elsewhere
        if one.code[0] == "J" and {each.code for each in audit.findings} & {"J4", "U2"}:
            # A source was not known when the servers were read: it was rebuilt just then, or its
            # receivers have not connected since. Nothing is said of what no channel links until then.
            continue
        if (
            _is_uncounted(plan, one)
            or _is_so_without(truth, one)
            or _is_in_a_former_log(after, one)
            or _waits_yet(after, one)
        ):
            continue
        if one.code == "H1" and _was_named_by_a_backlog(truth, without, one):
            continue
        if one.code == "A2" and any(
            f" were compared on {one.replica} (its rows were not read)" in each
            and "Then the applier may stop" in each
            for each in plan.warnings
        ):
            continue
        if _was_hidden_by_a_loss(audit, again, one):
            continue
        if one.code == "H8" and (
            _was_named_by_a_refusal(plan, one)
            or _is_said_of_a_backlog(plan, audit, one)
            or _was_asked_of_a_copy(plan, one)
            or _failed_beside(truth, after, one)
        ):
            continue
        if (
            _is_a_known_loss(audit, one)
            or _is_the_same_loss(without, one)
            or _has_work_of_unseen(truth, after, one)
        ):
            continue
        if _waits_with_another_channel(audit, after, one):
            continue
        if _was_left_out_as_told(plan, one) or _was_started_at_a_copy(truth, one):
            continue
        if one.id not in known:
            text = f"afterwards: {one.code} {one.source}->{one.replica}, not announced"
            yield Violation("plan", one.code, text)
        elif one.code[0] in "HEPJ" and one.gtid_set - known[one.id]:
            text = f"afterwards: {one.code} {one.source}->{one.replica} has grown"
            yield Violation("plan", one.code, text)
        elif (
            one.id in answered
            and (not one.gtid_set or one.gtid_set & seen[one.id])
            and not _is_held_above(after, one)
        ):
            # What joined the finding since, without the plan as well, is not what was answered.
            yield Violation("plan", one.code, f"{one.code} was answered and is still there")


def _was_hidden_by_a_loss(audit: ClusterAudit, again: ClusterAudit, one: Finding) -> bool:
    """Return whether E3 or E6 explained what a channel shows, and its transactions are H7 by now.

    Another server's log, which the plan filled, shows that they were made by hand (H7): that does
    not explain the state of the channel, which was there before.
    """
    ends = {one.source, one.replica}
    lost = [each for each in audit.findings if each.code in ("E3", "E6")]
    by_hand = GtidSet.union_of(each.gtid_set for each in again.findings if each.code == "H7")
    return one.code in ("A4", "A7", "C3", "T3") and any(
        {each.source, each.replica} == ends and each.gtid_set <= by_hand for each in lost
    )


def _is_so_without(truth: Truth, one: Finding) -> bool:
    """Return whether a fault is there without the plan, where the audit reports another cause.

    1. A receiver that its source refuses for purged logs (P1) keeps its error (A4) when the plan
       brings what it needed by another channel.
    2. What is on its way to a source waits behind a lock that is younger than the limits.
    3. A session holds a lock, or owns a GTID (A5), on a server that nothing was on its way to: no
       applier waited for it, so no reading shows it. The transactions that the plan brings there
       wait, like any other; and what waits without the plan as well waits for longer meanwhile.
    4. A session committed other content under a GTID (E4): the logs are asked for it only while the
       applier is held back, and it passed that GTID before.
    """
    if one.code == "E4" and one.replica is not None:
        had = truth.world[one.replica].executed
        return members_of(one.gtid_set, truth.world) <= truth.world.by_hand.keys() & had
    if one.code == "A4" and one.replica is not None:
        channel = truth.rested[one.replica].channel(one.channel or "")
        return channel is not None and bool(channel.receiver_error[0])
    if one.code == "A5" and one.replica is not None:
        held = truth.rested[one.replica]
        return bool(held.lock) or held.session_owns in members_of(one.gtid_set, truth.rested)
    return one.code in ("E1", "E2") and truth.waits_within_limits(str(one.source))


def _was_named_by_a_backlog(truth: Truth, without: ClusterAudit, one: Finding) -> bool:
    """Return whether a file position has passed what is otherwise reported as not received (T3, A4).

    Each names that cause, and is there without the plan; below a source that was reset (E6) it is not
    reported. The end of the source's log, which could not be read, would have shown it; what the
    plan commits there shows it, as any other commit does.
    """
    source, replica = truth.rested[one.source or ""], truth.rested[one.replica or ""]
    stays = gtids(source.executed - replica.executed)
    place = (one.source, one.replica)
    said = [each for each in without.findings if (each.source, each.replica) == place]
    if any(each.code == "E6" for each in said):
        return one.gtid_set <= stays
    return one.gtid_set <= stays & GtidSet.union_of(
        each.gtid_set
        for each in said
        if each.code in ("T3", "A4", "H1") and "file position" in each.explanation
    )


def _failed_beside(truth: Truth, after: World, one: Finding) -> bool:
    """Return whether another channel of the replica stopped at these, with the plan and without it.

    This channel passes what that one holds. Its A2 comes first, and answers both.
    """
    failed = {
        channel.failed.gtid
        for world in (truth.rested, after)
        for channel in world[one.replica or ""].channels
        if channel.name != one.channel and channel.failed is not None
    }
    return one.gtid_set <= gtids(failed)


def _waits_with_another_channel(audit: ClusterAudit, after: World, one: Finding) -> bool:
    """Return whether a channel waits for what another one of its server applies and a lock holds.

    The plan brings it there as well. On a server its worker then waits for the GTID (A5, seen on
    9.7.4); a simulated one has not begun it, and its coordinator waits (A8).
    """
    held = GtidSet.union_of(
        each.gtid_set for each in audit.findings if (each.code, each.replica) == ("A5", one.replica)
    )
    if one.code == "A5":
        return bool(held) and one.gtid_set <= held
    if one.code != "A8" or one.replica is None:
        return False
    server = after[one.replica]
    return any(
        channel.name == one.channel
        and not channel.working
        and (following := channel.relay[channel.relay_at :])
        and following[0].transaction.gtid in server.owned
        and gtids([following[0].transaction.gtid]) <= held & one.gtid_set
        for channel in server.channels
    )


def _was_left_out_as_told(plan: Plan, one: Finding) -> bool:
    """Return whether an applier that ignores errors left out what its rows or tables do not fit.

    The plan says that these were not compared, and that the applier may stop there; and the audit
    that it does not stop (C15). A statement whose error 5.6 ignores leaves no GTID behind (H8).
    """
    ignores = any(each.code == "C15" and each.about == one.replica for each in plan.afterwards)
    return (one.code, one.grade) == ("H8", Grade.LIKELY) and any(
        f" were compared on {one.replica} " in each and "Then the applier may stop" in each
        for each in plan.warnings
        if ignores
    )


def _was_started_at_a_copy(truth: Truth, one: Finding) -> bool:
    """Return whether a channel leads to an unseen copy of what counts as its source.

    Both have one server_uuid. Only the address of the channel differs from that at which the source
    was read, and servers have several. The finding names such a copy among its causes.
    """
    if one.code not in ("E3", "E6") or "under the same server_uuid" not in one.explanation:
        return False
    replica, source = truth.world[one.replica or ""], truth.world[one.source or ""]
    froms = [truth.world[each.source] for each in replica.channels]
    return any(
        each.uuid == source.uuid
        and each.name not in truth.reading.visible
        and one.gtid_set <= gtids(truth.rested[each.name].executed)
        for each in froms
    )


def _is_a_known_loss(audit: ClusterAudit, one: Finding) -> bool:
    """Return whether a server lost what the audit reported, and a further one holds it by now."""
    return one.code in ("E3", "E6", "H7") and any(
        (each.code, each.source) == (one.code, one.source) and one.gtid_set <= each.gtid_set
        for each in audit.findings
    )


def _is_the_same_loss(without: ClusterAudit, one: Finding) -> bool:
    """Return whether what is missing without the plan as well has another code behind it.

    E3 and E6, both likely, leave the same causes: which of the two it is depends on what else its
    holders have received. Both name a session elsewhere (H7), which a log may prove later. H1 is H8
    once the channel has auto-position on. What E1 says that a session set by hand is a part of H7
    as soon as H7 has others too.
    """
    by_hand = GtidSet.union_of(
        each.gtid_set
        for each in without.findings
        if each.code in ("E1", "E2")
        and each.replica == one.replica
        and "a session set gtid_next by hand" in each.explanation
        and one.code == "H7"
    )
    pairs = ({"E3", "E6"}, {"H1", "H8"}, {"E3", "H7"}, {"E6", "H7"})
    return (one.grade is Grade.LIKELY or one.code == "H7") and any(
        each.grade is Grade.LIKELY and one.gtid_set - by_hand <= each.gtid_set
        for each in without.findings
        if {each.code, one.code} in pairs
        and (each.source, each.replica) == (one.source, one.replica)
    )


def _was_named_by_a_refusal(plan: Plan, one: Finding) -> bool:
    """Return whether a plan has named what a stopped channel holds and its source does not have.

    It is a hole of the replica (H8) as soon as a step gives it to the source again.
    """
    held, source = one.gtid_set.shortened(), one.source
    text = f"the relay log of {one.replica} has {held}, which {source} does not have"
    return any(text in each.why for each in plan.not_planned)


def _is_refused_as_told(after: World, plan: Plan, one: Finding) -> bool:
    """Return whether a plan says that a source whose settings were not read may refuse the start."""
    channel = after[one.replica or ""].channel(one.channel or "")
    assert channel is not None, "A4 is about a channel"
    return channel.receiver_error[1] == PERMISSIVE and is_refusal_told(
        after, after[one.replica or ""], channel, plan.warnings
    )


def _waited_for_a_copy(truth: Truth, one: Finding) -> bool:
    """Return whether a channel by file position led to an unseen copy of the source before.

    A4 compares its place with the source's log, and names the copy, as soon as auto-position is on.
    """
    channel = truth.world[one.replica or ""].channel(one.channel or "")
    if channel is None or channel.auto_position or channel.source in truth.reading.visible:
        return False
    return truth.world[channel.source].uuid == truth.world[one.source or ""].uuid


def _is_uncounted(plan: Plan, one: Finding) -> bool:
    """Return whether a plan says that a start on 5.6 may execute one transaction that is errant."""
    ends = (one.source, one.replica) if one.code == "C2" else (one.replica, one.source)
    said = "receiver connected: {} executes it. If {} lost it since".format(*ends)
    return (one.code in ("E1", "E3", "E6", "C2") and one.gtid_set.gtid_count == 1) and any(
        said in text for text in plan.warnings
    )


def _was_asked_of_a_copy(plan: Plan, one: Finding) -> bool:
    """Return whether a plan says that a copy of the source may be asked, and H8 be there again."""
    said = f"that one is asked again, and {one.code} is still there afterwards"
    return any(
        text.startswith(f"{one.source} was not read at ") and said in text for text in plan.warnings
    )


def _is_said_of_a_backlog(plan: Plan, audit: ClusterAudit, one: Finding) -> bool:
    """Return whether a plan says of a likely backlog (T1, T2) that it may turn out as passed."""
    said = {each.finding_id for each in plan.not_planned if "has passed as H8" in each.why}
    return any(
        each.id in said and each.replica == one.replica and one.gtid_set <= each.gtid_set
        for each in audit.findings
    )


def _is_in_a_former_log(after: World, one: Finding) -> bool:
    """Return whether a place is one of a former log of the source, as the finding says.

    As long as the new log is shorter that shows; what the plan brings there makes it longer, as any
    other commit does.
    """
    is_said = one.grade is Grade.LIKELY and "then the place says nothing" in one.explanation
    name = one.replica or ""
    return is_said and any(
        channel.receiver == "No"
        for channel in after[name].channels
        if channel.name == (one.channel or "")
    )


def _waits_yet(after: World, one: Finding) -> bool:
    """Return whether what seems passed by (H8, likely) waits in a relay log, as the finding says.

    A hole that a plan filled on a source is in its log behind higher numbers. A replica whose worker
    waits at one of these seems to have left the lower ones behind, until it has applied all.
    """
    if (one.code, one.grade) != ("H8", Grade.LIKELY) or one.replica is None:
        return False
    waiting = (
        gtids(each.transaction.gtid for each in channel.relay[channel.relay_at :])
        for channel in after[one.replica].channels
        if channel.name == (one.channel or "")
    )
    return "these may be among it" in one.explanation and one.gtid_set <= next(waiting, GtidSet())


def _is_held_above(after: World, one: Finding) -> bool:
    """Return whether a lock holds back a server that the started channel receives from (P1).

    The lock was not there for long when it was read. Once it is released, what is due arrives.
    """
    if one.code != "P1" or one.replica is None:
        return False
    due = one.gtid_set
    return any(
        after[name].lock
        and due
        <= GtidSet.union_of(
            (
                gtids(after[name].executed),
                *(gtids(each.retrieved) for each in after[name].channels),
            )
        )
        for name in after.upstream(one.replica) - {one.replica}
    )


def _met_what_was_not_committed(truth: Truth, after: World, one: Finding) -> bool:
    """Return whether an applier stopped at a transaction that its source had not yet when read.

    It comes later, like every transaction to come, and no reading shows the row that it changes.
    """
    if one.code not in ("A2", "A3") or one.replica is None:
        return False
    executed = {server.name: server.gtid_executed for server in truth.snapshot.last}
    return all(
        channel.failed is not None
        and not gtids([channel.failed.gtid]) <= (executed.get(channel.source) or GtidSet())
        for channel in after[one.replica].channels
        if channel.name == one.channel
    )


def _has_work_of_unseen(truth: Truth, after: World, one: Finding) -> bool:
    """Return whether a source refuses a receiver for GTIDs of its own that an unseen server made.

    They were given by hand and came by another channel, from a server outside the audit (J4), after
    the servers were read.
    """
    if one.code != "A4" or one.replica is None or one.source is None:
        return False
    source, replica = after[one.source], after[one.replica]
    known = GtidSet.union_of(each.gtid_executed or GtidSet() for each in truth.snapshot.last)
    made = {each.gtid: each.origin for each, _ in replica.applied}
    beyond = {each for each in replica.executed - source.executed if each[0] == source.uuid}
    return bool(beyond) and all(
        made.get(each) not in truth.reading.visible and not gtids([each]) <= known
        for each in beyond
    )


def _met_hidden(truth: Truth, after: World, one: Finding) -> bool:
    """Return whether an applier that the plan started stopped at work that no set shows."""
    name = one.replica or ""
    return any(
        met_hidden_work(truth.rested, after, name, channel.failed)
        for channel in after[name].channels
        if channel.name == one.channel
    )


def _met_what_two_bring(plan: Plan, after: World, one: Finding) -> bool:
    """Return whether an applier stopped at what another channel was to bring as well, as warned."""
    server = after[one.replica or ""]
    return len(server.channels) > 1 and any(
        f"another channel of {server.name} brings" in each for each in plan.warnings
    )


def _met_what_was_empty(plan: Plan, one: Finding) -> bool:
    """Return whether an applier stopped behind what it was to execute without content, as warned."""
    return any(f"{one.replica} {EMPTY}" in each for each in plan.warnings)


def _met_an_unlogged_change(truth: Truth, plan: Plan, after: World, one: Finding) -> bool:
    """Return whether an applier stopped at a row that was changed with sql_log_bin=0, as warned."""
    texts = (f"compared on {one.replica} ", "with sql_log_bin = 0", "Then the applier may stop")
    is_said = any(all(text in each for text in texts) for each in plan.warnings)
    stopped = [
        each.failed for each in after[one.replica or ""].channels if each.name == one.channel
    ]
    return is_said and all(
        each is not None and bool(each.keys & truth.rested.drifted) for each in stopped
    )


def _met_statement(truth: Truth, plan: Plan, after: World, one: Finding) -> bool:
    """Return whether an applier stopped at a statement, or a row that one made otherwise, as warned."""
    server = after[one.replica or ""]
    texts = (f"compared on {server.name} ", "a statement now or before")
    is_said = any(all(text in each for text in texts) for each in plan.warnings)
    statements = {  # logged as rows further down
        made
        for each in truth.world.servers.values()
        for made, _ in each.applied
        if made.has_statements
    }
    works: dict[Gtid, set[int]] = {}
    for made in (each for other in truth.world.servers.values() for each, _ in other.applied):
        works.setdefault(made.gtid, set()).add(made.work)
    there = {each for each in statements if each.gtid in server.executed}
    written = {key for each in there if len(works[each.gtid]) == 1 for key in each.keys}
    stopped = (each.failed for each in server.channels if each.name == one.channel)
    return is_said and all(
        each is not None and (each.has_statements or bool(each.keys & written)) for each in stopped
    )


def _interrupted(
    truth: Truth, plan: Plan, snapshot: ClusterSnapshot, first: ClusterAudit, full: Outcome
) -> Iterator[Violation]:
    """8. Stop after any step; audit, plan again and run that, until the same end is reached."""
    if full.refused or len(plan.steps) < 2:
        return
    codes = codes_of(plan)
    for steps in range(1, len(plan.steps)):
        world = part = run(truth.world, plan, snapshot, steps=steps).world
        made = [plan]
        for _ in range(_PLANS_AFTER_A_STOP):
            again, audit = look_again(truth, world, compares=True)
            made.append(plan_of(truth, world, again, audit))
            world = run(world, made[-1], again).world
            found = harm(
                truth.rested,
                world,
                codes,
                "plan interrupted",
                injected=GtidSet.union_of(map(_injected, made)),
                seen=_seen(truth, plan),
                unread=truth.unread,
                goes_on=GtidSet.union_of(map(_goes_on, made)),
                warnings=tuple(text for each in made for text in each.warnings),
            )
            yield from but_for_what_is_new(truth, world, found)
            left = [
                name
                for name in _ending_otherwise(truth, snapshot, made, part, (full.world, world))
                if not _came_meanwhile(truth, first, audit, name)
            ]
            if not left or not made[-1].steps:
                break
        if left:
            text = f"stopped after step {steps}: {left[0]} ends with another gtid_executed"
            yield Violation("plan interrupted", codes, text)
            return


def _ending_otherwise(
    truth: Truth,
    snapshot: ClusterSnapshot,
    made: list[Plan],
    part: World,
    ends: tuple[World, World],
) -> Iterator[str]:
    """Yield the servers that the plans made after a stop leave with less than the first one alone.

    `ends` are the world after the first plan in full, and the one after its part and the others.
    """
    full, rest = ends
    plan, *others = made
    known = GtidSet.union_of(each.gtid_executed or GtidSet() for each in snapshot.last)
    known |= _injected(plan)
    for name, server in full.servers.items():
        # What had not reached a source when the plan was made, the others alone look at.
        near = known & _near(snapshot, name) | _injected(plan)
        hidden = _hidden_by_permissive(part, snapshot)
        near -= hidden
        if any(
            _asks_about_injected(plan, other, name) or (hidden and _asks(other, name))
            for other in others
        ):
            continue
        if len(others) > 1 and others[0].steps and _asks(others[-1], name):
            continue  # the second plan started another channel first, and the rows came that way
        if any(_doubts_what_was_received_since(other, snapshot, name) for other in others):
            continue  # nothing shows whether a relay log got it before its source restarted
        if _met_a_statement(rest, snapshot, name):
            continue  # no log shows which rows it changed, so nothing shows those of a gap
        if met_what_is_new(truth, truth.rested, server):
            continue  # a later plan reads that transaction, and starts no applier onto it
        if gtids(server.executed - rest[name].executed) & near:
            yield name


def _doubts_what_was_received_since(plan: Plan, snapshot: ClusterSnapshot, name: str) -> bool:
    """Return whether a plan asks about the start of an applier, for a backlog that is new.

    It may be what a restarted source lost and reused. At the first reading the server had received
    none of it: then its present source was to send it, and there was no doubt.
    """
    had = GtidSet.union_of(
        each.gtid_retrieved
        for server in snapshot.last
        for each in server.channels or ()
        if server.name == name
    )
    return any(
        each.code == "A7"
        and name in each.about.split()
        and "the relay log of" in each.why
        and "has the former ones" in each.why
        and not GtidSet.parse(each.gtids) & had
        for each in plan.not_planned
    )


def _met_a_statement(world: World, snapshot: ClusterSnapshot, name: str) -> bool:
    """Return whether a server has applied since it was read what some server logged as a statement."""
    then = {each.name: each.gtid_executed or GtidSet() for each in snapshot.last}
    since = gtids(world[name].executed) - then.get(name, GtidSet())
    applied = (made for server in world.servers.values() for made, _ in server.applied)
    return any(made.has_statements and gtids([made.gtid]) <= since for made in applied)


def _came_meanwhile(truth: Truth, first: ClusterAudit, audit: ClusterAudit, name: str) -> bool:
    """Return whether a finding has GTIDs that neither of its servers had at the first reading.

    They came without the plan as well: a hole or errant transactions that may need a decision
    first. A finding is answered as a whole, and a hole keeps what follows it from being answered.
    So does a thread that stops meanwhile, with the plan and without it, on any server. The same
    goes for what was a backlog then (T1 to T3) and was passed since, and for contents that only the
    later audit could compare (E4). And for what proved that a GTID was set by hand (H7): once a
    higher one arrives on its origin, nothing shows that the origin has not reached it.
    """
    then = {each.name: each.gtid_executed or GtidSet() for each in truth.snapshot.first}
    _, without = look_again(truth, truth.rested, compares=True)
    there = {one.id: one.gtid_set for one in without.findings}
    had = {one.id: one.gtid_set for one in first.findings}
    stopped = {one.id for one in audit.findings if one.code in ("A1", "A2", "A3", "A4")}
    compared = {one.id for one in audit.findings if one.code == "E4" and one.replica == name}
    if ((stopped | compared) & there.keys()) - had.keys():
        return True
    proved = {one.id for one in first.findings if one.code == "H7" and one.grade is Grade.PROVED}
    likely = {one.id for one in without.findings if one.grade is Grade.LIKELY}
    if any(one.source == name and one.id in proved & likely for one in above_info(audit)):
        return True
    backlog = GtidSet.union_of(
        one.gtid_set for one in first.findings if one.code[0] == "T" and one.replica == name
    )
    return any(
        (one.gtid_set & there.get(one.id, GtidSet()))
        - had.get(one.id, GtidSet())
        - (_of(then, one) - backlog)
        for one in above_info(audit)
        if one.code[0] in "EHPJ" or one.code == "A7"
        if {one.source, one.replica} & {name, *truth.world.upstream(name)}
    )


def _of(sets: Mapping[str, GtidSet], one: Finding) -> GtidSet:
    return GtidSet.union_of(sets.get(name or "", GtidSet()) for name in (one.source, one.replica))


def _asks_about_injected(plan: Plan, second: Plan, name: str) -> bool:
    """Return whether the second plan starts a server only when it is selected, for what was injected.

    An empty transaction by hand has another commit than that of its GTID on a replica, or on the
    source. The readings do not separate it from a source that was reset and has given it again. A step on another
    server then waits for that start, if its transactions reach others only through that server.
    """
    injects = {each.server for each in plan.steps if isinstance(each.effect, InjectEmpty)}
    doubts = [
        each.why for each in second.not_planned if "or they were committed by hand on" in each.why
    ]
    asks = {
        server
        for server in injects
        for why in doubts
        if f"or they were committed by hand on {server}" in why
        or why.startswith(f"start_channel: {server} has lost, or reset, transactions")
    }
    return name in asks or any(
        "afterwards the audit would report" in each.why and name in each.about.split()
        for each in second.not_planned
        if asks
    )


def _asks(plan: Plan, name: str) -> bool:
    """Return whether a plan leaves a finding about a server to the operator, who compares its rows.

    A server in ON_PERMISSIVE sends nothing by GTID. What a first plan brought there may be other
    data than elsewhere, for all that any reading shows, and have met the rows of the next step.
    """
    return any(
        name in each.about.split() and "Compare the rows, then choose" in each.why
        for each in plan.not_planned
    )


def _near(snapshot: ClusterSnapshot, name: str) -> GtidSet:
    """Return what a server had or had received, and what its direct sources had executed."""
    servers = {each.name: each for each in snapshot.last}
    here = servers.get(name)
    if here is None:
        return GtidSet()
    ends = (name, *(path.source_host for path in here.channels or ()))
    held = (servers[end].gtid_executed or GtidSet() for end in ends if end in servers)
    return GtidSet.union_of((here.gtid_retrieved, *held))


def _hidden_by_permissive(world: World, snapshot: ClusterSnapshot) -> GtidSet:
    """Return what a server in ON_PERMISSIVE has applied since it was read.

    It sends nothing by GTID, so nothing shows that it has the same content there as the others.
    """
    executed = {each.name: each.gtid_executed or GtidSet() for each in snapshot.last}
    return GtidSet.union_of(
        gtids(server.executed) - executed.get(name, GtidSet())
        for name, server in world.servers.items()
        if server.permissive
    )


def _names_a_gtid_of(plan: Plan, world: World, line: Line) -> bool:
    injected = _injected(plan)
    return (
        any(gtids([(str(line[2]), tag, int(line[3]))]) <= injected for tag in ("", "dba"))
        and str(line[1]) in world.servers
    )


def met_what_is_new(truth: Truth, moved: World, server: Server) -> bool:
    """Return whether an applier stopped at what was not committed above it when the plan was made.

    Like every transaction to come, it meets the rows of a server with work of its own (E1) whenever
    it is committed; it only came between plan and script.
    """
    above = truth.world.upstream(server.name)
    known = GtidSet.union_of(
        each.gtid_executed or GtidSet() for each in truth.snapshot.last if each.name in above
    )
    there = set[Gtid]().union(
        *(each.executed for each in moved.servers.values() if each.name in above)
    )
    failed = [channel.failed for channel in server.channels if channel.failed is not None]
    return bool(failed) and all(
        each.gtid in there and not gtids([each.gtid]) <= known for each in failed
    )


def but_for_what_is_new(
    truth: Truth, after: World, found: Iterable[Violation]
) -> Iterator[Violation]:
    """Yield violations without what no server had when they were read, and what it does to rows.

    It meets a row that is another one already, as each transaction to come does that changes it:
    work with one GTID and two contents, or with sql_log_bin=0, which no set shows. The applier
    stops there, or overwrites a row whose only record a RESET removed.
    """
    for each in found:
        place = after[each.text.partition(":")[0]] if ": " in each.text else None
        if "stops: " in each.text and place and met_what_is_new(truth, truth.rested, place):
            continue
        if "an older version" in each.text and place and overwrote_forgotten(truth, place):
            continue
        yield each


def overwrote_forgotten(truth: Truth, server: Server) -> bool:
    """Return whether what no source of a server had when it was read changed rows of forgotten work.

    It is compared by no plan: it comes later, in the order of the source's log.
    """
    sources = {channel.source for channel in server.channels}
    known = GtidSet.union_of(
        each.gtid_executed or GtidSet() for each in truth.snapshot.last if each.name in sources
    )
    was = truth.rested[server.name]
    forgotten = {
        key for made, undo in was.applied if is_forgotten(truth.world, {made}) for key, _ in undo
    }
    new = (made for made, _ in server.applied if not was.works[made.work])
    return any(made.keys & forgotten and not gtids([made.gtid]) <= known for made in new)


LATE: tuple[str, ...] = (
    "load", "write", "write-errant", "stop-replica", "start-replica", "repoint", "configure-only",
    "purge", "reset-binary-logs-and-gtids", "crash", "write-by-hand", "failover",
)  # fmt: skip


_STOPPING = ("stop-replica", "configure-only")


def dice_of_moment(truth: Truth) -> random.Random:
    """Return what decides behind which step of a plan the world moves on."""
    return random.Random(~truth.reading.seed)


def moved_to(world: World, plan: Plan, snapshot: ClusterSnapshot, begin: int) -> World | None:
    """Return a copy of the world behind the first steps; None if one of them refused."""
    if not begin:
        return world.copy()
    part = run(world, plan, snapshot, steps=begin)
    return None if part.refused else part.world


def at(begin: int) -> str:
    """Return when a late step came, in words."""
    return f"behind step {begin}," if begin else "after"


def _late(
    truth: Truth, plan: Plan, snapshot: ClusterSnapshot, audit: ClusterAudit, full: World
) -> Iterator[Violation]:
    """8. The world moves on between planning and running, or between two steps."""
    codes = codes_of(plan)
    dice = random.Random(truth.reading.seed)
    begin = dice_of_moment(truth).randrange(len(plan.steps))
    moved = moved_to(truth.world, plan, snapshot, begin)
    if moved is None:
        return
    name = dice.choice(LATE)
    args = STEPS[name].choose(moved, dice)
    if args is None:
        return
    known = {server.name for server in truth.snapshot.last if server.gtid_executed is not None}
    known &= {*_seen(truth, plan)}  # its channels were not read
    if args and args[0] in moved.servers and args[0] not in known:
        return  # "nothing is known of" it, or it is not in the snapshot: so says each plan
    line: Line = (name, *args)
    if name.startswith("write-by-hand") and _names_a_gtid_of(plan, moved, line):
        # Two transactions under one GTID are different content (E4) with the plan and without it,
        # and no script of another server can see the second one.
        return
    if not perform(moved, line):
        return
    act.rest(moved)
    late = run(moved, plan, snapshot, begin=begin)
    found = harm(
        moved,
        late.world,
        codes,
        "plan late",
        injected=_injected(plan),
        seen=_seen(truth, plan),
        unread=truth.unread,
        goes_on=_goes_on(plan),
        warnings=plan.warnings,
    )
    for each in found:
        if "stops: " in each.text and "row event" not in each.text:
            continue  # the source refuses the connection because of the late step, and says so
        place = each.text.replace(":", " ").split()[0]
        if _is_so_in_full(full[place], late.world[place], each.text):
            continue
        if "stops: " in each.text and met_what_is_new(truth, moved, late.world[place]):
            continue
        if "an older version" in each.text and overwrote_forgotten(truth, late.world[place]):
            continue
        if "an older version" in each.text and _left_as_errant(
            moved[place], plan, audit, each.text
        ):
            continue  # the plan leaves its own row to a decision, and replication goes on
        if name == "repoint" and place == args[0] and not _has_step_on(plan, place):
            # It receives from another server only since the plan was made, and a script on that one
            # cannot see it; one on the server itself refuses because its channels changed.
            continue
        if name == "write-errant" and place == args[0] and not _compares_rows_of(plan, place):
            continue  # replication goes on over it, as over one that the audit has reported (E1)
        if " is declared unneeded on " in each.text and _same_after(truth, plan, late, line):
            continue
        if " is declared unneeded on " in each.text and (
            _points_to_unseen(truth, line) or _was_not_shown(truth, plan, each.text)
        ):
            continue
        if name in _STOPPING and late.world[place].rows == truth.rested[place].rows:
            continue  # it was stopped before the script started it: as if it had not been stopped
        if (
            name.startswith("reset-")
            and place == args[0]
            and _forgot_later_ones(truth, moved[place])
        ):
            continue
        yield replace(each, text=f"{at(begin)} {' '.join(map(str, line))}: {each.text}")


def _has_step_on(plan: Plan, name: str) -> bool:
    return any(step.server == name for step in plan.steps)


def _compares_rows_of(plan: Plan, name: str) -> bool:
    """Return whether a step starts a channel of a server for rows that were compared there."""
    effects = [step.effect for step in plan.steps if step.server == name]
    return any(
        (isinstance(each, StartChannel) and (each.rows or each.waiting or each.in_order))
        or (isinstance(each, AutoPositionOn) and each.compared_at is not None)
        for each in effects
    )


def _is_so_in_full(full: Server, late: Server, text: str) -> bool:
    """Return whether a server ends so without the late step as well: 7 has looked at that."""
    if "stops: " in text:
        stopped = {each.failed.gtid for each in full.channels if each.failed is not None}
        return all(each.failed.gtid in stopped for each in late.channels if each.failed is not None)
    twice = {work for work, count in late.works.items() if count > 1}
    return " twice" in text and all(full.works[work] > 1 for work in twice)


def _left_as_errant(before: Server, plan: Plan, audit: ClusterAudit, text: str) -> bool:
    """Return whether a row was changed last by a transaction that a plan reports and leaves (E1)."""
    last = last_writer(before, text.split()[1])
    left = {each.finding_id for each in plan.afterwards if each.code in ("E1", "E2")}
    named = GtidSet.union_of(each.gtid_set for each in audit.findings if each.id in left)
    return last is not None and gtids([last.gtid]) <= named


def _points_to_unseen(truth: Truth, line: Line) -> bool:
    """Return whether a late step lets a server receive from one that the plan has not considered."""
    return line[0] in ("repoint", "configure-only") and line[3] not in truth.reading.visible


def _was_not_shown(truth: Truth, plan: Plan, text: str) -> bool:
    """Return whether no log showed data under a GTID when the plan was made; a late RESET is no log."""
    under = {made.gtid for each in truth.world.servers.values() for made, _ in each.applied}
    return any(
        text.startswith(f"{gtid_text(gtid)} ")
        and not _data_under(truth.world, gtid, _seen(truth, plan))
        for gtid in under
    )


def _forgot_later_ones(truth: Truth, server: Server) -> bool:
    """Return whether a server was reset and has again all that it had when it was read.

    What it had applied since then and forgot was in no reading: its set shows no loss to a script.
    """
    had = {each.name: each.gtid_executed for each in truth.snapshot.last}[server.name]
    return had is not None and had <= gtids(server.executed)


def _same_after(truth: Truth, plan: Plan, late: Outcome, line: Line) -> bool:
    """Return whether the late step, done after the whole plan instead, leads to the same end.

    What the plan leaves out was then not needed when it was made (7 has looked), and what differs
    now is the work of the late step: a session that writes a row on a replica, whenever it does.
    """
    after = run(truth.world, plan, truth.snapshot).world
    if not perform(after, line):
        return False
    act.rest(after)
    return _end(after, truth.rested.works) == _end(late.world, truth.rested.works)


def _end(world: World, known: int) -> list[tuple[object, ...]]:
    """Return the sets of all servers, and their rows; work behind the plan is not distinguished."""
    return [
        (sorted(each.executed), {key: min(value, known + 1) for key, value in each.rows.items()})
        for each in world.servers.values()
    ]
