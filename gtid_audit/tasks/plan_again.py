"""Makes a plan repeatable: keeps its command line, and the choices of an earlier plan.

1. A command line contains no secret: a DSN with a password is refused before planning.
2. After a part of its steps has run, a cluster has fewer findings. If the finding of an earlier
   choice is gone, the choice has been carried out and is dropped. A typed choice that fits no
   finding is an error; the planner reports it.
3. While transactions are being left out, the finding may change its code and its servers. What was
   added to gtid_purged on one server is then E2 there, not E1. The choice continues for it.
4. A choice that leaves out or undoes transactions is for the GTIDs of the earlier plan. If the
   finding has other GTIDs by now (further errant writes, the next row conflict), it needs a new
   choice.
5. The last steps of a plan may start channels that their source refused (E3, P1). Once the sets
   agree these findings are gone, and only the receiver's error remains (A4). The start is then
   selected for A4. After lost transactions (E3) that holds only if contents were compared and do
   not differ: the source may have reused the GTIDs.
"""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_of_dsns import PAIR
from repair import Plan
from repair.render import PLAN
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.strategy_table import strategies_for
from topology.readings.target import ServerTarget

# Strategies whose choice is about GTIDs, on any server that is missing them.
_LEAVING_OUT: Final = frozenset({"inject_empty", "gtid_purged_append"})
_LOSING: Final = _LEAVING_OUT | {"reset_and_purge", "undo_on_replica"}
_NOTHING: Final[Mapping[str, GtidSet]] = MappingProxyType({})
_NOWHERE: Final[Mapping[tuple[str, str], str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """An operator's request for a plan: strategies for findings, and a selection of findings."""

    choices: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    # By strategy: the GTIDs that steps of the plan leave out because the operator selected it.
    left_out: Mapping[str, GtidSet] = field(default_factory=lambda: _NOTHING)
    # By finding whose transactions are left out or undone by choice: their GTIDs.
    named: Mapping[str, GtidSet] = field(default_factory=lambda: _NOTHING)
    # By server and channel: the code of the finding whose selected strategy starts that channel.
    started: Mapping[tuple[str, str], str] = field(default_factory=lambda: _NOWHERE)

    def still(
        self,
        audit: ClusterAudit,
        typed: Iterable[str] = (),
        compared: Collection[Collection[str]] = (),
    ) -> "PlanRequest":
        """Return the parts for findings that still exist, or continue under another id.

        Choices that were typed for a finding or its code take precedence. `compared` are the pairs
        of servers whose contents the audit compared.
        """
        ids = {finding.id for finding in audit.findings}
        there = ids | {finding.code for finding in audit.findings}
        others = {each.id for each in audit.findings if self._has_others(each)}
        choices = {key: name for key, name in self.choices.items() if key in there - others}
        grown = {each.code for each in audit.findings if each.id in others}
        for code in sorted(grown & {*choices}):
            same = {each.id for each in audit.findings if each.code == code} - others
            choices = {**dict.fromkeys(sorted(same), choices.pop(code)), **choices}
        known = {*choices, *typed}
        for finding in audit.findings:
            is_known = {finding.id, finding.code} & known or finding.id in others
            if is_known:
                continue
            name = self._going_on(finding) or self._start(finding, audit, compared)
            if name is not None:
                choices[finding.id] = name
        only = None if self.only is None else tuple(each for each in self.only if each in ids)
        return PlanRequest(choices, only)

    def _has_others(self, finding: Finding) -> bool:
        """Return whether a finding with a selected strategy has other GTIDs by now."""
        named = self.named.get(finding.id)
        return named is not None and bool(finding.gtid_set - named)

    def _going_on(self, finding: Finding) -> str | None:
        if not finding.gtid_set or not finding.code.startswith("E"):
            return None
        fitting = (
            name
            for name, gtids in self.left_out.items()
            if finding.gtid_set <= gtids and name in strategies_for(finding.code)
        )
        return next(fitting, None)

    def _start(
        self, finding: Finding, audit: ClusterAudit, compared: Collection[Collection[str]]
    ) -> str | None:
        earlier = self.started.get((finding.replica or "", finding.channel or ""))
        if finding.code != "A4" or earlier is None:
            return None
        ends = {finding.source, finding.replica}
        is_compared = any(ends == set(pair) for pair in compared)
        differs = any(
            each.code == "E4" and each.strategies and {each.source, each.replica} == ends
            for each in audit.findings
        )
        is_settled = earlier != "E3" or (is_compared and not differs)
        return "start_channel" if is_settled else None

    def and_typed(self, choices: Mapping[str, str], only: Iterable[str] | None) -> "PlanRequest":
        """Return this request with the typed choices, which take precedence."""
        return PlanRequest({**self.choices, **choices}, tuple(only) if only else self.only)


def wanted_by(directory: Path) -> PlanRequest:
    """Read the request of a written plan. Raises UsageProblem."""
    path = directory / PLAN
    try:
        return wanted_of(json.loads(path.read_text()))
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageProblem(f"{path}: not a plan of this version of gtid-audit") from error


def wanted_of(written: Mapping[str, Any]) -> PlanRequest:
    """Return the request of a plan, from its plain values (plan.json)."""
    choices, only = written["choices"], written["only_findings"]
    return PlanRequest(
        {key: str(name) for key, name in choices.items()},
        None if only is None else tuple(map(str, only)),
        _left_out(written),
        dict(_named(written)),
        dict(_started(written)),
    )


def _selected(
    written: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield each finding with a selected strategy, and what its steps change."""
    changes = {each["number"]: each["change"] for each in written["steps"]}
    for answered in written["answered"]:
        if {answered["finding_id"], answered["code"]} & written["choices"].keys():
            yield answered, [changes[number] for number in answered["steps"]]


def _started(written: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for answered, changes in _selected(written):
        for change in changes:
            if change["type"] == "StartChannel":
                place = str(change["server"]), str(change["channel"])
                yield place, str(answered["code"])


def _named(written: Mapping[str, Any]) -> Iterator[tuple[str, GtidSet]]:
    for answered, _ in _selected(written):
        if answered["strategy"] in _LOSING and "gtids" in answered:  # older plans have no `gtids`
            yield str(answered["finding_id"]), GtidSet.parse(answered["gtids"])


def _left_out(written: Mapping[str, Any]) -> Mapping[str, GtidSet]:
    found: dict[str, GtidSet] = {}
    for answered, changes in _selected(written):
        name = answered["strategy"]
        if name in _LEAVING_OUT:
            parts = (change.get("gtids") for change in changes)
            gtids = GtidSet.union_of(GtidSet.parse(each) for each in parts if each is not None)
            found[name] = found.get(name, GtidSet()) | gtids
    return found


def command_line(
    dsns: tuple[str, ...],
    fleet: Path | None,
    cluster: str | None,
    wanted: PlanRequest,
    *,
    flags: Iterable[str],
    out: Path | None,
) -> str:
    """Return the command that plans again: with --again, or with all choices as options."""
    words = ["gtid-audit", "repair", "plan"]
    if dsns:
        words += ["--pair", *dsns] if len(dsns) == PAIR else dsns
    if fleet is not None:
        words += ["--fleet", str(fleet)]
    if cluster is not None:
        words += ["--cluster", cluster]
    words += flags
    if out is not None:
        words += ["--again", str(out)]
    else:
        words += [f"--strategy={key}={name}" for key, name in sorted(wanted.choices.items())]
        words += [f"--finding={each}" for each in wanted.only or ()]
    return shlex.join(words)


def repeatable(
    plan: Plan, wanted: PlanRequest, command: str, targets: Iterable[ServerTarget]
) -> Plan:
    """Return a plan with its choices, its command line, and the addresses of its servers."""
    sockets = {each.name: each.unix_socket for each in targets if each.unix_socket is not None}
    return replace(
        plan.reached_by(sockets),
        choices=dict(sorted(wanted.choices.items())),
        only_findings=wanted.only,
        command=command,
    )
