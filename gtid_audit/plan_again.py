"""What makes a plan repeatable: the command line that makes it, and the choices of an earlier plan.

1. A command line holds no secret: a DSN with a password is refused before a plan is made.
2. Planned again behind a part of its steps, a cluster has fewer findings. A choice of the earlier
   plan for a finding that is gone has been carried out, and is left out. A choice that is typed and
   fits nothing is an error: that is for the planner.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gtid_audit.exits import UsageProblem
from repair import Plan
from repair.render import PLAN
from topology.findings import ClusterAudit
from topology.target import ServerTarget


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator asked of a plan: ways for findings, and the findings if not all."""

    choices: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] | None = None

    def still(self, audit: ClusterAudit) -> "Wanted":
        """Return what of it concerns findings that are still there."""
        ids = {finding.id for finding in audit.findings}
        there = ids | {finding.code for finding in audit.findings}
        return Wanted(
            {key: name for key, name in self.choices.items() if key in there},
            None if self.only is None else tuple(each for each in self.only if each in ids),
        )

    def and_typed(self, choices: Mapping[str, str], only: Iterable[str] | None) -> "Wanted":
        """Return it with what was typed, which comes first."""
        return Wanted({**self.choices, **choices}, tuple(only) if only else self.only)


def wanted_by(directory: Path) -> Wanted:
    """Read what a written plan was asked for. Raises UsageProblem."""
    path = directory / PLAN
    try:
        written = json.loads(path.read_text())
        choices, only = written["choices"], written["only_findings"]
        return Wanted(
            {key: str(name) for key, name in choices.items()},
            None if only is None else tuple(map(str, only)),
        )
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageProblem(f"{path}: not a plan that this version wrote") from error


def command_line(
    pair: tuple[str, str] | None,
    fleet: Path | None,
    cluster: str | None,
    wanted: Wanted,
    *,
    flags: Iterable[str],
    out: Path | None,
) -> str:
    """Return the command that plans again: with the choices of the written plan, or spelled out."""
    words = ["gtid-audit", "repair", "plan"]
    if pair is not None:
        words += ["--pair", *pair]
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


def repeatable(plan: Plan, wanted: Wanted, command: str, targets: Iterable[ServerTarget]) -> Plan:
    """Return a plan with its choices, its command line, and how its servers are reached."""
    sockets = {each.name: each.unix_socket for each in targets if each.unix_socket is not None}
    return replace(
        plan.reached_by(sockets),
        choices=dict(sorted(wanted.choices.items())),
        only_findings=wanted.only,
        command=command,
    )
