"""Repairs that left transactions empty by decision, and what an audit may accept because of them.

How it works
------------
gtid-audit only reads servers, so a repair leaves no record on them. The record is the plan itself
(`plan.json`). It lists the GTIDs that it commits as empty transactions or declares executed, and
the server of each. A policy lists plans. An audit that compares contents then finds such a GTID
empty on one server and not on another (E4). It reports the difference as accepted, not as missing
transactions.

A plan in a policy shows only what the operator intended. The audit accepts a difference if the
servers show that the plan was executed, and that nothing else happened under the GTID:

1. a server that the plan empties (by server_uuid) has executed the GTID;
2. the version with less content is empty, and not merely shorter;
3. the other version was committed before the plan was made. A later commit is another transaction,
   about which the operator decided nothing. Before 8.0.1 the time is that of the log;
4. the plan saw the server of the other version. Another server may have other rows under the GTID,
   which the operator never saw.

The audit reports everything else about the two servers as before. GTIDs of the same pair that no
plan empties stay in the finding; its set omits the accepted ones.

A GTID set that a plan appended to gtid_purged is in no log: there is no second version, and only
the first condition is checked (without_content.py reports such sets). Rows that a script wrote or
took back without logging are not accepted: no state of a server shows that the operator ran the
script.

A plan that takes rows back (`undo_on_replica`) leaves the transactions empty on the other servers,
because no server is to hold their rows. A server on which the rows were not taken back differs from
the others permanently, with equal sets. So three more conditions must hold:

5. the server that has the content is one on which the plan takes it back;
6. so is every other server of the cluster that has executed the GTID, unless the plan empties it or
   the comparison shows that it is empty there: the server is linked to an emptied one by pairs that
   were compared and do not differ, and not to one that has the content. Example: a → b → c, undone
   on b by a plan for a and b. The rows of a and b agree, but c received the rows from b. No
   comparison of two logs shows c, because b and c have the same transaction;
7. the rows were read from both servers and are equal by value. Otherwise, the script may never have
   been run.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gtid import Gtid, GtidSet
from topology.readings.contents import ContentDifference, ContentReading, TransactionVersion
from topology.readings.snapshot import ServerSnapshot

# The version of plan.json (repair/repair_plan.py) that this module reads.
PLAN_SCHEMA_VERSION: Final = 2
APPLIED_FILE: Final = "applied.json"  # beside plan.json: who applied the plan, and when
_EMPTIES: Final = frozenset({"InjectEmpty", "AppendPurged"})
_TAKES_BACK: Final = "UndoRows"


class NotAPlan(ValueError):
    """A document that is not a plan in a format that this version reads."""


@dataclass(frozen=True, slots=True)
class AcceptedRepair:
    """What one plan leaves empty, by server_uuid; sorted by server_uuid.

    `seen`: the servers that the plan knew, by server_uuid, sorted. `undone`: the transactions whose
    rows the plan takes back, by the server on which it does so.
    """

    plan_id: str
    planned_at: datetime
    seen: tuple[UUID, ...]
    emptied: tuple[tuple[UUID, GtidSet], ...]
    undone: tuple[tuple[UUID, GtidSet], ...] = ()
    # Who applied it with `repair apply`; empty if only the mysql client ran its scripts.
    applied_by: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Return the plan as text: its id, and who applied it, if that is known."""
        by = f", applied by {' and '.join(self.applied_by)}" if self.applied_by else ""
        return f"{self.plan_id}{by}"

    def to_text(self) -> str:
        """Return the repair as one line, for a command line."""
        sets = {
            name: {str(uuid): str(gtids) for uuid, gtids in each}
            for name, each in (("emptied", self.emptied), ("undone", self.undone))
        }
        planned_at = self.planned_at.isoformat()
        seen = [str(each) for each in self.seen]
        by = list(self.applied_by)
        return json.dumps(
            {
                "plan_id": self.plan_id,
                "planned_at": planned_at,
                "seen": seen,
                "applied_by": by,
                **sets,
            }
        )

    @property
    def taken_back(self) -> GtidSet:
        """Return the transactions whose rows the plan takes back on any server."""
        return GtidSet.union_of(gtids for _, gtids in self.undone)

    def takes_back_on(self, uuid: UUID | None, gtid: Gtid) -> bool:
        """Return whether the plan takes back the rows of a transaction on a server."""
        return any(uuid == each and gtid in gtids for each, gtids in self.undone)


def accepted_from_text(text: str) -> AcceptedRepair:
    """Read what `to_text` wrote. Raises NotAPlan."""
    try:
        found = json.loads(text)
        emptied, undone = (
            [(UUID(uuid), GtidSet.parse(gtids)) for uuid, gtids in found[name].items()]
            for name in ("emptied", "undone")
        )
        seen = [UUID(each) for each in found["seen"]]
        repair = _repair(found["plan_id"], found["planned_at"], seen, emptied, undone)
        return replace(repair, applied_by=tuple(map(str, found.get("applied_by", ()))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("expected an accepted repair as `spark command` writes it") from error


def accepted_from_plan(text: str) -> AcceptedRepair:
    """Read a plan.json. Raises NotAPlan."""
    try:
        plan = json.loads(text)
        _check_version(plan.get("schema_version", plan.get("format_version")))
        uuids = {each["server"]: UUID(each["server_uuid"]) for each in plan["assumed"]}
        changes: list[Mapping[str, Any]] = [step["change"] for step in plan["steps"]]
        emptied, undone = (
            [
                (uuids[change["server"]], GtidSet.parse(change["gtids"]))
                for change in changes
                if change["type"] in types
            ]
            for types in (_EMPTIES, {_TAKES_BACK})
        )
        return _repair(plan["id"], plan["snapshot_read_at"], uuids.values(), emptied, undone)
    except NotAPlan:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("not a plan that `repair plan` wrote") from error


def applied_by_from_text(text: str, plan_id: str) -> tuple[str, ...]:
    """Return who applied a plan, each once, as its record has it (`repair apply` writes it).

    Raises NotAPlan.
    """
    try:
        found = [
            str(each["operator"])
            for each in json.loads(text)["applied"]
            if each["plan_id"] == plan_id
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("not a record that `repair apply` wrote") from error
    return tuple(dict.fromkeys(found))


def _check_version(version: object) -> None:
    if version != PLAN_SCHEMA_VERSION:
        raise NotAPlan(
            f"a plan with schema version {version}; this gtid-audit reads {PLAN_SCHEMA_VERSION}"
        )


def _repair(
    plan_id: str,
    planned_at: str,
    seen: Iterable[UUID],
    emptied: Iterable[tuple[UUID, GtidSet]],
    undone: Iterable[tuple[UUID, GtidSet]],
) -> AcceptedRepair:
    moment = datetime.fromisoformat(planned_at)
    if moment.tzinfo is None:
        raise NotAPlan("the time of the plan has no time zone")
    servers = tuple(sorted({*seen}))
    return AcceptedRepair(str(plan_id), moment, servers, _by_server(emptied), _by_server(undone))


def _by_server(each: Iterable[tuple[UUID, GtidSet]]) -> tuple[tuple[UUID, GtidSet], ...]:
    sets: dict[UUID, GtidSet] = {}
    for uuid, gtids in each:
        sets[uuid] = sets.get(uuid, GtidSet()) | gtids
    return tuple(sorted(sets.items()))


_COMPARE_UNSEEN: Final = (
    "Its rows under these GTIDs may be others than those that the plan left out: compare them."
)
_RUN_IN_ORDER: Final = (
    "Run its scripts in order, and each check directly before its script. Where rows were written"
    " again since, the check stops: do not run that script then. At the end compare the rows of"
    " every server that executed these transactions."
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan that leaves a transaction empty, and why its outcome is not accepted, with a remedy.

    Without a reason, the outcome is accepted.
    """

    plan: str  # its id, and who applied it
    why_not: str = ""
    remedy: str = ""


class Acceptance:
    """Decides which differences between the servers of one cluster are accepted, and by which plan.

    `servers` are the last readings: they show what each server has executed. `contents` is the
    result of the comparison.
    """

    def __init__(
        self,
        repairs: Iterable[AcceptedRepair],
        servers: Sequence[ServerSnapshot],
        contents: ContentReading | None = None,
    ) -> None:
        self._executed = {
            server.name: server.gtid_executed or GtidSet()
            for server in servers
            if server.server_uuid is not None
        }
        self._uuids = {server.name: server.server_uuid for server in servers}
        by_uuid = {self._uuids[name]: each for name, each in self._executed.items()}
        self._done = [
            (
                repair,
                GtidSet.union_of(
                    gtids & by_uuid[uuid] for uuid, gtids in repair.emptied if uuid in by_uuid
                ),
            )
            for repair in repairs
        ]
        self._alike = _Alike(contents) if contents is not None else None

    def decision_on(self, difference: ContentDifference) -> Decision | None:
        """Return the plan that left a transaction empty, and whether its outcome is accepted.

        Return None if no plan did. An accepted plan takes precedence over one that is not accepted.
        """
        empty, other = difference.source, difference.replica
        if not empty.is_empty:
            empty, other = other, empty
        if not empty.is_empty or other.is_empty:
            return None
        refused = None
        for repair, done in self._done:
            if difference.gtid in done and _committed_at(other) <= repair.planned_at:
                decision = self._decision(repair, difference, empty.server, other.server)
                if not decision.why_not:
                    return decision
                refused = refused or decision
        return refused

    def _decision(
        self, repair: AcceptedRepair, difference: ContentDifference, empty: str, holder: str
    ) -> Decision:
        if self._uuids.get(holder) not in repair.seen:
            return Decision(repair.shown, f"it was made without {holder}", _COMPARE_UNSEEN)
        why_not = ""
        if difference.gtid in repair.taken_back:
            why_not = self._why_not(repair, difference, empty, holder)
        return Decision(repair.shown, why_not, _RUN_IN_ORDER if why_not else "")

    def _why_not(
        self, repair: AcceptedRepair, difference: ContentDifference, empty: str, holder: str
    ) -> str:
        """Return why a plan that takes rows back does not explain a difference.

        See conditions 5 to 7 in the module docstring.
        """
        gtid = difference.gtid
        left = [
            name
            for name, executed in sorted(self._executed.items())
            if gtid in executed
            and name != empty
            and not repair.takes_back_on(self._uuids[name], gtid)
            and (name == holder or not self._is_empty_on(name, repair, gtid))
        ]
        if left:
            return (
                f"it has no step that undoes their rows on {', '.join(left)}, which executed them:"
                " the rows are probably still there"
            )
        if not difference.has_equal_rows:
            return (
                f"the audit does not show that their rows were undone on {holder}: they differ from"
                f" those on {empty}, or could not be compared"
            )
        return ""

    def _is_empty_on(self, name: str, repair: AcceptedRepair, gtid: Gtid) -> bool:
        uuid = self._uuids[name]
        if any(uuid == each and gtid in gtids for each, gtids in repair.emptied):
            return True
        if self._alike is None:
            return False
        empty, full = (
            [
                each
                for each, executed in self._executed.items()
                for uuid, gtids in sets
                if uuid == self._uuids[each] and gtid in gtids and gtid in executed
            ]
            for sets in (repair.emptied, repair.undone)
        )
        linked = self._alike.linked_to(name, gtid)
        return not linked.isdisjoint(empty) and linked.isdisjoint(full)


class _Alike:
    """Which servers have the same transaction, as far as their pairs were compared."""

    def __init__(self, contents: ContentReading) -> None:
        self._pairs = {frozenset(pair) for pair in contents.pairs}
        self._differing: dict[Gtid, set[frozenset[str]]] = {}
        for each in contents.differences:
            pair = frozenset((each.source.server, each.replica.server))
            self._differing.setdefault(each.gtid, set()).add(pair)

    def linked_to(self, name: str, gtid: Gtid) -> set[str]:
        """Return the servers that are linked to one by pairs without a difference under a GTID."""
        pairs = self._pairs - self._differing.get(gtid, set())
        linked: set[str] = set()
        more = {name}
        while more:
            linked |= more
            more = {each for pair in pairs if pair & more for each in pair} - linked
        return linked


NOTHING_ACCEPTED: Final = Acceptance((), ())


def _committed_at(version: TransactionVersion) -> datetime:
    return version.committed_at if version.committed_at is not None else version.logged_at
