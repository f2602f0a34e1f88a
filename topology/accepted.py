"""Repairs that left transactions empty by decision, and what an audit may accept because of them.

How it works
------------
Servers are only read, so a repair leaves no record on them. Its record is the plan itself
(`plan.json`): which GTIDs it commits as empty transactions, or declares executed, on which server.
A policy names plans; an audit that compares contents then finds such a GTID empty on one server and
not on another (E4), and reports it as accepted instead of missing work.

A plan in a policy shows only what was intended. A difference is accepted if the servers show that
it was done, and that nothing else happened under the GTID:

1. a server that the plan empties (by server_uuid) has executed the GTID;
2. the version with less content is empty, not only shorter;
3. the other version was committed before the plan was made. A later commit is another transaction,
   which the operator never decided about. Before 8.0.1 the time is that of the log.

Everything else about the two servers is reported as before: GTIDs of the same pair that no plan
empties stay in the finding, and the accepted ones are left out of its set.

A GTID set that a plan appended to gtid_purged is in no log: there is no second version, and only
the first condition is checked (rules/unlogged.py reports such sets). Rows that were written or
taken back without logging are not accepted: no state of a server shows that their script was run.

A plan that takes rows back (`undo_on_replica`) leaves the transactions empty on the others because
no server shall hold their rows. It is accepted only if three more conditions hold, since a server
on which nothing was taken back differs from the others for ever, with equal sets:

4. the server that has the content is one on which the plan takes it back;
5. so is every other server of the cluster that has executed the GTID, unless the plan empties it
   or the comparison shows that it is empty there: the server is linked to an emptied one by pairs
   that were compared and do not differ, and not to one that has the content. Example: a → b → c,
   undone on b by a plan for a and b. Of a and b the rows agree; c received the rows from b. No
   two logs that are compared show c: b and c have the same transaction;
6. the rows were read from both servers, and are equal by value: the script may never have been run.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gtid import Gtid, GtidSet
from topology.contents import ContentDifference, ContentReading, TransactionVersion
from topology.snapshot import ServerSnapshot

# The format of plan.json (repair/plan.py) that is understood here.
PLAN_FORMAT_VERSION: Final = 2
_EMPTIES: Final = frozenset({"InjectEmpty", "AppendPurged"})
_TAKES_BACK: Final = "UndoRows"


class NotAPlan(ValueError):
    """A document that is no plan of a format that this version reads."""


@dataclass(frozen=True, slots=True)
class AcceptedRepair:
    """What one plan leaves empty, by the server_uuid of the server; sorted by it.

    `undone`: the transactions of which it takes the rows back, by the server where it does.
    """

    plan_id: str
    planned_at: datetime
    emptied: tuple[tuple[UUID, GtidSet], ...]
    undone: tuple[tuple[UUID, GtidSet], ...] = ()

    def to_text(self) -> str:
        """Return it as one line, for a command line."""
        sets = {
            name: {str(uuid): str(gtids) for uuid, gtids in each}
            for name, each in (("emptied", self.emptied), ("undone", self.undone))
        }
        planned_at = self.planned_at.isoformat()
        return json.dumps({"plan_id": self.plan_id, "planned_at": planned_at, **sets})

    @property
    def taken_back(self) -> GtidSet:
        """Return the transactions of which it takes the rows back on any server."""
        return GtidSet.union_of(gtids for _, gtids in self.undone)

    def takes_back_on(self, uuid: UUID | None, gtid: Gtid) -> bool:
        """Return whether it takes the rows of a transaction back on a server."""
        return any(uuid == each and gtid in gtids for each, gtids in self.undone)


def accepted_from_text(text: str) -> AcceptedRepair:
    """Read what `to_text` wrote. Raises NotAPlan."""
    try:
        found = json.loads(text)
        emptied, undone = (
            [(UUID(uuid), GtidSet.parse(gtids)) for uuid, gtids in found[name].items()]
            for name in ("emptied", "undone")
        )
        return _repair(found["plan_id"], found["planned_at"], emptied, undone)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("expected an accepted repair as `spark command` writes it") from error


def accepted_from_plan(text: str) -> AcceptedRepair:
    """Read a plan.json. Raises NotAPlan."""
    try:
        plan = json.loads(text)
        _check_format(plan["format_version"])
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
        return _repair(plan["id"], plan["snapshot_read_at"], emptied, undone)
    except NotAPlan:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("not a plan that `repair plan` wrote") from error


def _check_format(version: object) -> None:
    if version != PLAN_FORMAT_VERSION:
        raise NotAPlan(f"a plan of format {version}; this version reads {PLAN_FORMAT_VERSION}")


def _repair(
    plan_id: str,
    planned_at: str,
    emptied: Iterable[tuple[UUID, GtidSet]],
    undone: Iterable[tuple[UUID, GtidSet]],
) -> AcceptedRepair:
    moment = datetime.fromisoformat(planned_at)
    if moment.tzinfo is None:
        raise NotAPlan("the time of the plan has no time zone")
    return AcceptedRepair(str(plan_id), moment, _by_server(emptied), _by_server(undone))


def _by_server(each: Iterable[tuple[UUID, GtidSet]]) -> tuple[tuple[UUID, GtidSet], ...]:
    sets: dict[UUID, GtidSet] = {}
    for uuid, gtids in each:
        sets[uuid] = sets.get(uuid, GtidSet()) | gtids
    return tuple(sorted(sets.items()))


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan that leaves a transaction empty, and why its outcome is not accepted."""

    plan_id: str
    why_not: str = ""  # empty: it is accepted


class Acceptance:
    """Answers which differences between the servers of one cluster are accepted, and by which plan.

    `servers` are the last readings: they say what each server has executed. `contents` is what was
    compared.
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
        """Return the plan that left a transaction empty, and whether that is accepted.

        None if no plan did. A plan that is accepted comes before one that is not.
        """
        empty, other = difference.source, difference.replica
        if not empty.is_empty:
            empty, other = other, empty
        if not empty.is_empty or other.is_empty:
            return None
        refused = None
        for repair, done in self._done:
            if difference.gtid in done and _committed_at(other) <= repair.planned_at:
                why_not = ""
                if difference.gtid in repair.taken_back:
                    why_not = self._why_not(repair, difference, empty.server, other.server)
                if not why_not:
                    return Decision(repair.plan_id)
                refused = refused or Decision(repair.plan_id, why_not)
        return refused

    def _why_not(
        self, repair: AcceptedRepair, difference: ContentDifference, empty: str, holder: str
    ) -> str:
        """Return why a plan that takes rows back does not explain a difference: see above."""
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
                f"it has no step that takes their rows back on {', '.join(left)}, which executed"
                " them: the rows are probably still there"
            )
        if not difference.has_equal_rows:
            return (
                f"the audit did not see that their rows were taken back on {holder}: they differ"
                f" from those on {empty}, or could not be compared"
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
    """Which servers have the same transaction, as far as pairs of them were compared."""

    def __init__(self, contents: ContentReading) -> None:
        self._pairs = {frozenset(pair) for pair in contents.pairs}
        self._differing: dict[Gtid, set[frozenset[str]]] = {}
        for each in contents.differences:
            pair = frozenset((each.source.server, each.replica.server))
            self._differing.setdefault(each.gtid, set()).add(pair)

    def linked_to(self, name: str, gtid: Gtid) -> set[str]:
        """Return the servers that pairs without a difference under a GTID link to one."""
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
