"""Shows the next steps of a report: complete commands, and what cannot wait for one. Pure.

How it works
------------
1. `topology/catalogue/next_step_table.py` has the steps of each code. This module fills in servers
   and GTIDs. A step that needs a server without a DSN is left out; what is left always includes a
   command, at least `explain`.
2. Sentences of all findings come first. Then come all commands of the first finding, which is the
   most severe one, and the first command of each further code in its cluster. `repair plan` is
   last: it plans for all of them.
3. A set that is too long for a command line is cut: `binlog show` reads the first of the GTIDs, and
   the report says how many there are. Its JSON document has them all, for `@FILE`.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from gtid import GtidSet, Tsid
from gtid.counted_nouns import counted
from gtid_audit.operands.servers_in_commands import NamedInCommands, ServersInCommands
from gtid_audit.output import printable
from topology.catalogue.findings import Finding, Unknown
from topology.catalogue.next_step_table import (
    EXPLAIN,
    LOGGED_BY_REPLICA,
    LOGGED_BY_SOURCE,
    NEXT_STEPS,
    OF_THE_REPLICA,
    PLAN,
    NextStep,
    privilege_for,
)
from topology.readings.snapshot import ClusterSnapshot
from topology.rules.schema_differences import DRIFT_COMMAND

COMMANDS_MAX: Final = 4  # and `repair plan`
SET_CHARACTERS_MAX: Final = 400
SERVERS_MAX: Final = 8  # in one command or sentence
_PAIR: Final = 2
_WORD: Final = re.compile(r"\{(\w+)\}")
PROGRAM: Final = "gtid-audit"
HEAD: Final = "Next: "
_GRANT: Final = (
    "On the primary, so that it reaches {servers}: GRANT {privilege} TO the account of gtid-audit"
    " (SELECT CURRENT_USER() shows it)."
)


class _NoValue(Exception):
    """A word of a command has no value in this report."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step behind its head. In a terminal no command is broken: it is copied from there."""

    head: str
    step: NextStep

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType | Segment]:
        text = printable(self.step.text)
        if self.step.is_command and not console.record:  # a picture has a width
            yield Segment(self.head, Style(bold=True))
            yield Segment(f"{text}\n")
            return
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(self.head, style="bold"), Text(text))
        yield grid


def next_parts(
    findings: Sequence[Finding],
    unknown: Iterable[Unknown],
    *,
    named: NamedInCommands,
    snapshots: Mapping[str, ClusterSnapshot],
) -> list[RenderableType]:
    """Show what to do next; nothing if there is neither a finding nor a privilege to grant.

    `findings` are those above info, worst first.
    """
    # No privilege of MySQL lets gtid-audit evaluate another kind of server.
    others = {(each.cluster, each.replica) for each in findings if each.code == "U4"}
    readable = [each for each in unknown if (each.cluster, each.server) not in others]
    steps = [*next_steps(findings, named=named, snapshots=snapshots), *grants(readable)]
    heads = (HEAD, *(" " * len(HEAD) for _ in steps[1:]))
    lines = [StepLine(head, step) for head, step in zip(heads, steps, strict=False)]
    return [Text(), *lines] if lines else []


# With which option a plan finds it again. Only the memory of an audit may have led to an E4.
_FOUND_WITH: Final = {"E4": " --content", "S2": " --definitions"}


def next_steps(
    findings: Sequence[Finding],
    *,
    named: NamedInCommands,
    snapshots: Mapping[str, ClusterSnapshot],
) -> list[NextStep]:
    """Return sentences and complete commands. `findings` are those above info, worst first."""
    if not findings:
        return []
    first = findings[0]
    servers, snapshot = named(first.cluster), snapshots.get(first.cluster)
    said: list[NextStep] = []
    commands: list[tuple[NextStep, ...]] = []
    plans: list[NextStep] = []
    codes = {each.code for each in findings if each.cluster == first.cluster}
    options = "".join(option for code, option in _FOUND_WITH.items() if code in codes)
    for code in dict.fromkeys(each.code for each in findings):
        one = next(each for each in findings if each.code == code)
        filled = _Filled(one, servers, snapshot)
        said += filled.sentences(NEXT_STEPS[code])
        if one.cluster != first.cluster:
            continue
        found = filled.commands(
            step for step in NEXT_STEPS[code] if step.is_command and step is not PLAN
        )
        planned = filled.commands([PLAN] if PLAN in NEXT_STEPS[code] else [])
        if one is first and not (found or planned):  # no server can be asked, such as offline
            found = filled.commands([EXPLAIN])
        commands += found if one is first else found[:1]
        plans += [replace(each, text=each.text + options) for [each] in planned]
    if not commands and not plans:
        commands += _Filled(first, servers, snapshot).commands([EXPLAIN])
    shown = [step for line in list(dict.fromkeys(commands))[:COMMANDS_MAX] for step in line]
    return [*dict.fromkeys(said), *shown, *plans[:1]]


def grants(unknown: Iterable[Unknown]) -> list[NextStep]:
    """Return what to grant, so that all facts of an audit can be read."""
    wanted: dict[str, list[str]] = {}
    for each in unknown:
        privilege = privilege_for(each.fact, each.reason)
        if privilege is not None and each.server not in wanted.setdefault(privilege, []):
            wanted[privilege].append(each.server)
    return [
        NextStep(_GRANT.format(servers=_listed(names), privilege=privilege), is_command=False)
        for privilege, names in sorted(wanted.items())
    ]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SERVERS_MAX
    shown = ", ".join(names[:SERVERS_MAX])
    return f"{shown} and {counted(more, 'more server')}" if more > 0 else shown


class _Filled:
    """The steps of one finding, with its servers and its GTIDs."""

    def __init__(
        self, finding: Finding, servers: ServersInCommands, snapshot: ClusterSnapshot | None
    ) -> None:
        self._finding = finding
        self._servers = servers
        self._holder, self._gtids = _held(finding, snapshot)

    def sentences(self, steps: Iterable[NextStep]) -> Iterator[NextStep]:
        """Yield the sentences among the steps, with the names of the servers."""
        names = {"source": self._finding.source, "replica": self._finding.replica}
        known = {word: name for word, name in names.items() if name is not None}
        for step in steps:
            if not step.is_command and {*_WORD.findall(step.text)} <= known.keys():
                yield NextStep(step.text.format(**known), is_command=False)

    def commands(self, steps: Iterable[NextStep]) -> list[tuple[NextStep, ...]]:
        """Return complete commands, each with a note if it is about a part of the GTIDs."""
        found: list[tuple[NextStep, ...]] = []
        for step in steps:
            try:
                words = [word for each in step.text.split() for word in self._words(each)]
            except _NoValue:
                found += self._shown_by_rule(step)
                continue
            options = self._servers.options if self._has_dsn(words) else ()
            command = NextStep(shlex.join((PROGRAM, *words, *options)))
            note = self._note() if "{set}" in step.text else ""
            found.append((command, NextStep(note, is_command=False)) if note else (command,))
        return found

    def _words(self, word: str) -> tuple[str, ...]:
        """Return the words for one word of a step. Raises _NoValue."""
        found, servers = self._finding, self._servers
        match word:
            case "{code}":
                return (found.code,)
            case "{set}":
                return (self._shown_set(),)
            case "{holder}":
                return (self._dsn(self._holder),)
            case "{source}":
                return (self._dsn(found.source),)
            case "{replica}":
                return (self._dsn(found.replica),)
            case "{candidate}" if found.source is not None:
                return (found.source,)
            case "{consumer}" if found.replica is not None and servers.selection:
                return (found.replica,)
            case "{servers}":
                return servers.selection or self._all_servers()
            case "{plan}":
                return servers.selection or self._planned_servers()
            case "{schema}":
                return self._schema()
        if word.startswith("{"):
            raise _NoValue
        return (word,)

    def _dsn(self, name: str | None) -> str:
        if name is None or name not in self._servers.dsns:
            raise _NoValue
        return self._servers.dsns[name]

    def _has_dsn(self, words: Iterable[str]) -> bool:
        return not {*words}.isdisjoint(self._servers.dsns.values())

    def _all_servers(self) -> tuple[str, ...]:
        dsns = tuple(self._servers.dsns.values())
        if not _PAIR <= len(dsns) <= SERVERS_MAX:
            raise _NoValue
        return dsns

    def _planned_servers(self) -> tuple[str, ...]:
        """Return all servers; of too many for a command, the two of the finding."""
        dsns = tuple(self._servers.dsns.values())
        if _PAIR < len(dsns) <= SERVERS_MAX:
            return dsns
        if len(dsns) != _PAIR:
            dsns = (self._dsn(self._finding.source), self._dsn(self._finding.replica))
        return ("--pair", *dsns)

    def _shown_set(self) -> str:
        if not self._gtids:
            raise _NoValue
        return str(_cut(self._gtids))

    def _note(self) -> str:
        """Return what a command leaves out of the finding's GTIDs; "" if nothing."""
        whole, shown = self._finding.gtid_set.gtid_count, _cut(self._gtids).gtid_count
        if shown == whole:
            return ""
        part = f"{shown:,} of {counted(whole, 'transaction')}"
        if shown < self._gtids.gtid_count:
            return f"(the first {part}; --json has the whole set, which can stand here as @FILE)"
        return f"({part}; {self._holder} does not have the others in its binary logs)"

    def _schema(self) -> tuple[str, ...]:
        """Return the option of the command that the rule wrote."""
        words = [word for each in self._drift() for word in shlex.split(each)]
        return tuple(words[words.index("--schema") :]) if "--schema" in words else ()

    def _shown_by_rule(self, step: NextStep) -> list[tuple[NextStep, ...]]:
        """Return the command in the evidence of S2: stored readings have it, and no DSN."""
        if "{schema}" not in step.text:
            return []
        return [(NextStep(each),) for each in self._drift()]

    def _drift(self) -> list[str]:
        return [each.value for each in self._finding.evidence if each.fact == DRIFT_COMMAND]


def _held(finding: Finding, snapshot: ClusterSnapshot | None) -> tuple[str | None, GtidSet]:
    """Return the server that has most of a finding's GTIDs in its binary logs, and those GTIDs.

    The ends of the finding come first, in the order in which they are likely to have them.
    """
    ends = [finding.source, finding.replica]
    if finding.code in OF_THE_REPLICA:
        ends.reverse()
    if snapshot is None:
        if finding.code in LOGGED_BY_REPLICA:
            return finding.replica, finding.gtid_set
        if finding.code in LOGGED_BY_SOURCE:
            return finding.source, finding.gtid_set
        return None, finding.gtid_set
    names = dict.fromkeys([*(each for each in ends if each is not None), *snapshot.last_read])
    best, most = None, GtidSet()
    for name in names:
        server = snapshot.last_read.get(name)
        if server is None:
            continue
        logged = finding.gtid_set & server.gtid_executed - server.gtid_purged
        if logged.gtid_count > most.gtid_count:
            best, most = name, logged
    return best, most


def _cut(gtids: GtidSet) -> GtidSet:
    """Return the first GTIDs of a set: as many intervals as fit into a command; one always does."""
    kept: list[tuple[Tsid, int, int]] = []
    characters = 0
    for tsid, start, end in gtids.intervals():
        is_new = not kept or kept[-1][0] != tsid
        characters += len(f"{tsid}," if is_new else "") + len(f":{start}-{end - 1}")
        if characters > SET_CHARACTERS_MAX:
            break
        kept.append((tsid, start, end))
    return GtidSet.from_intervals(kept)
