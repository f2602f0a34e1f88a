"""The strategy for definitions that differ (S2): DDL on the replica, without logging it.

How it works
------------
A finding has all objects of one pair. Each object is decided by itself (definition_changes.py), and
each statement is one step:

    automatic   planned by default, and applied by `reconcile` if the policy permits it
    if selected planned if the operator selects the strategy, with what must be known as a warning
    by hand     never planned; the plan says why the object stays as it is

Nothing is planned by default where the direction is not clear: without a channel between the two
servers, or if each is a source of the other. Which of the two is right is then for the operator.

The statements are not logged (sql_log_bin = 0): a new GTID on the replica would be errant. So they
do not reach servers below the replica. These are compared with the replica, and repaired from the
top down, each by a plan of its own. An index or a view there is a difference that breaks nothing. A
column is not added by default while servers receive from the replica.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from repair.content.definition_parts import DefinitionsRead
from repair.model.replication_model import below
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.strategies.definition_changes import changes_of
from repair.strategies.definition_scenarios import Handling
from repair.strategies.planned_definition import DefinitionChange, Ends
from topology.catalogue.findings import Severity

CHOICE: Final = "--strategy S2=repair_definition"
BY_HAND: Final = (
    "by hand: run `gtid-audit schema drift` for the two servers; on the replica, in a session with"
    " `SET sql_log_bin = 0`, run the SQL that it prints for each object; then audit again with"
    " --definitions"
)


def repair_definition(case: Case) -> Outcome:
    """Plan the DDL for the objects that can be repaired; list the others with the reason."""
    source, replica, read = case.source, case.replica, case.definitions
    if source is None or replica is None:
        return Refusal(f"one of the two servers could not be read; {BY_HAND}")
    if read is None:
        return Refusal(f"the definitions were not read in full for this plan; {BY_HAND}")
    if read.refuses_writes:
        return Refusal(
            f"super_read_only is ON on {replica.name}, which refuses DDL of every session: set it"
            " to OFF there, keep read_only ON, and plan again"
        )
    unclear = _unclear(case, read)
    if unclear and not case.is_chosen:
        return Refusal(f"{unclear}. {CHOICE} makes {replica.name} like {source.name}; {BY_HAND}")
    ends = Ends(
        source=source.name,
        replica=replica.name,
        source_version=source.version,
        version=replica.version,
        has_one_source=not read.other_sources and len(replica.channels) == 1 and not unclear,
        has_below=bool([*below(case.model, replica.name)]),
        logs_rows=source.logs_rows and source.are_settings_known,
        executed=case.snapshot_executed[replica.name],
    )
    changes = [
        change
        for each in read.objects
        if each.drift.severity is not Severity.INFO
        for change in changes_of(each, ends)
    ]
    if not all(_is_planned(each, is_chosen=case.is_chosen) for each in changes):
        changes = [_after_others(each) for each in changes]
    planned = [each for each in changes if _is_planned(each, is_chosen=case.is_chosen)]
    stays = [each for each in changes if each not in planned]
    if not planned:
        return Refusal(f"{_reasons(stays) or 'nothing differs now'}; {BY_HAND}")
    return Proposal(
        tuple(each.action for each in planned if each.action is not None),
        tuple(_warnings(planned, unclear)),
        stays=tuple(map(_reason, stays)),
    )


def _unclear(case: Case, read: DefinitionsRead) -> str:
    """Return why it is not clear which of the two servers is right; "" if it is."""
    assert case.source is not None, "checked above"
    assert case.replica is not None, "checked above"
    names = f"{case.source.name} and {case.replica.name}"
    if not read.has_channel:
        return f"no channel connects {names}: which of them is right is not known"
    if read.is_mutual:
        return f"{names} are sources of each other: which of them is right is not known"
    return ""


def _after_others(change: DefinitionChange) -> DefinitionChange:
    """Return a change that is not automatic if it is of a view: what it uses may be missing."""
    if change.is_of_table or change.action is None:
        return change
    why = "a table, view or function that it may use stays different"
    return replace(change, handling=Handling.SELECTED, why=why, warning=why)


def _is_planned(change: DefinitionChange, *, is_chosen: bool) -> bool:
    if change.action is None:
        return False
    return change.handling is Handling.AUTOMATIC or is_chosen


def _warnings(planned: list[DefinitionChange], unclear: str) -> Iterator[str]:
    if unclear:
        yield unclear
    for each in planned:
        if each.handling is Handling.SELECTED and each.warning:
            yield f"{each.label}: {each.warning}"


def _reasons(stays: list[DefinitionChange]) -> str:
    return "; ".join(map(_reason, stays))


def _reason(change: DefinitionChange) -> str:
    select = f"; {CHOICE} does it" if change.handling is Handling.SELECTED else ""
    return f"{change.label}: {change.why}{select}"
