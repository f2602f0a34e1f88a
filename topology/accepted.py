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
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gtid import GtidSet
from topology.contents import ContentDifference, TransactionVersion
from topology.snapshot import ServerSnapshot

# The format of plan.json (repair/plan.py) that is understood here.
PLAN_FORMAT_VERSION: Final = 2
_EMPTIES: Final = frozenset({"InjectEmpty", "AppendPurged"})


class NotAPlan(ValueError):
    """A document that is no plan of a format that this version reads."""


@dataclass(frozen=True, slots=True)
class AcceptedRepair:
    """What one plan leaves empty, by the server_uuid of the server; sorted by it."""

    plan_id: str
    planned_at: datetime
    emptied: tuple[tuple[UUID, GtidSet], ...]

    def to_text(self) -> str:
        """Return it as one line, for a command line."""
        emptied = {str(uuid): str(gtids) for uuid, gtids in self.emptied}
        planned_at = self.planned_at.isoformat()
        return json.dumps({"plan_id": self.plan_id, "planned_at": planned_at, "emptied": emptied})


def accepted_from_text(text: str) -> AcceptedRepair:
    """Read what `to_text` wrote. Raises NotAPlan."""
    try:
        found = json.loads(text)
        return _repair(
            found["plan_id"],
            found["planned_at"],
            [(UUID(uuid), GtidSet.parse(gtids)) for uuid, gtids in found["emptied"].items()],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("expected an accepted repair as `spark command` writes it") from error


def accepted_from_plan(text: str) -> AcceptedRepair:
    """Read a plan.json. Raises NotAPlan."""
    try:
        plan = json.loads(text)
        _check_format(plan["format_version"])
        uuids = {each["server"]: UUID(each["server_uuid"]) for each in plan["assumed"]}
        changes: list[Mapping[str, Any]] = [step["change"] for step in plan["steps"]]
        return _repair(
            plan["id"],
            plan["snapshot_read_at"],
            [
                (uuids[change["server"]], GtidSet.parse(change["gtids"]))
                for change in changes
                if change["type"] in _EMPTIES
            ],
        )
    except NotAPlan:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAPlan("not a plan that `repair plan` wrote") from error


def _check_format(version: object) -> None:
    if version != PLAN_FORMAT_VERSION:
        raise NotAPlan(f"a plan of format {version}; this version reads {PLAN_FORMAT_VERSION}")


def _repair(plan_id: str, planned_at: str, emptied: list[tuple[UUID, GtidSet]]) -> AcceptedRepair:
    moment = datetime.fromisoformat(planned_at)
    if moment.tzinfo is None:
        raise NotAPlan("the time of the plan has no time zone")
    sets: dict[UUID, GtidSet] = {}
    for uuid, gtids in emptied:
        sets[uuid] = sets.get(uuid, GtidSet()) | gtids
    return AcceptedRepair(str(plan_id), moment, tuple(sorted(sets.items())))


class Acceptance:
    """Answers which differences between the servers of one cluster are accepted, and by which plan.

    `servers` are the last readings: they say what each server has executed.
    """

    def __init__(
        self, repairs: Iterable[AcceptedRepair], servers: Iterable[ServerSnapshot]
    ) -> None:
        executed = {
            server.server_uuid: server.gtid_executed or GtidSet()
            for server in servers
            if server.server_uuid is not None
        }
        self._done = [
            (
                repair,
                GtidSet.union_of(
                    gtids & executed[uuid] for uuid, gtids in repair.emptied if uuid in executed
                ),
            )
            for repair in repairs
        ]

    def plan_of(self, difference: ContentDifference) -> str | None:
        """Return the id of the plan by which a difference is accepted; None if by none."""
        empty, other = difference.source, difference.replica
        if not empty.is_empty:
            empty, other = other, empty
        if not empty.is_empty or other.is_empty:
            return None
        for repair, done in self._done:
            if difference.gtid in done and _committed_at(other) <= repair.planned_at:
                return repair.plan_id
        return None


NOTHING_ACCEPTED: Final = Acceptance((), ())


def _committed_at(version: TransactionVersion) -> datetime:
    return version.committed_at if version.committed_at is not None else version.logged_at
