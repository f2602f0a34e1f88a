"""Reads the lines of scenarios.txt about definitions.

`defined a b` says that the definitions of b were compared with those of its source a. Words may
follow: `mutual` (each is the other's source), `unlinked` (no channel), `unsearched=REASON`.
`ddl a b A:5 400` is DDL that a has executed and b has not, committed 400 seconds before noon.
`differs a b app.t "column fewer" proved` is a table that differs. Words may follow: `severe` (rows
stop the applier), `filtered`, `elsewhere` (another source may have it), `unsearched`, and
`errors=1054,1091`, `pending=A:5`, `cause=TEXT`. `undefined b triggers "reason"` was not read.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gtid import Gtid
from tests.topology.transcript_words import gtids
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
    UnreadDefinitions,
)
from topology.readings.logged_ddl import LoggedDdl


@dataclass
class ToldDefinitions:
    """What a story says about definitions."""

    noon: datetime
    pairs: dict[tuple[str, str], ComparedDefinitions] = field(default_factory=dict)
    unread: list[UnreadDefinitions] = field(default_factory=list)

    def reading(self) -> DefinitionReading | None:
        """Return what was read; None if the story says nothing about definitions."""
        if not self.pairs and not self.unread:
            return None
        read_at = self.noon + timedelta(seconds=4)
        return DefinitionReading(read_at, tuple(self.pairs.values()), tuple(self.unread))

    def hear(self, words: list[str]) -> bool:
        """Take one line, if it is about definitions."""
        match words:
            case ["defined", source, replica, *more]:
                self.pairs[source, replica] = _pair(source, replica, more)
            case ["ddl", source, replica, gtid, seconds]:
                self._ddl(source, replica, gtid, int(seconds))
            case ["differs", source, replica, name, classes, grade, *more]:
                pair = self.pairs[source, replica]
                differing = (*pair.differing, _object(name, classes, grade, more))
                self.pairs[source, replica] = replace(pair, differing=differing)
            case ["undefined", server, fact, reason]:
                self.unread.append(UnreadDefinitions(server, fact, reason))
            case _:
                return False
        return True

    def _ddl(self, source: str, replica: str, gtid: str, seconds: int) -> None:
        one = Gtid.parse(str(gtids(gtid)))
        found = LoggedDdl(
            one, self.noon - timedelta(seconds=seconds), "ALTER TABLE app.t ADD c INT"
        )
        if (source, replica) in self.pairs:
            pair = self.pairs[source, replica]
            self.pairs[source, replica] = replace(pair, behind=(*pair.behind, found))
        else:
            pair = self.pairs[replica, source]
            self.pairs[replica, source] = replace(pair, ahead=(*pair.ahead, found))


def _pair(source: str, replica: str, more: list[str]) -> ComparedDefinitions:
    unsearched = [each.partition("=")[2] for each in more if each.startswith("unsearched=")]
    return ComparedDefinitions(
        source,
        replica,
        (f"mysql://{source}/", f"mysql://{replica}/"),
        has_channel="unlinked" not in more,
        is_mutual="mutual" in more,
        object_count=12,
        differing=(),
        behind=(),
        ahead=(),
        unsearched="".join(unsearched),
    )


def _object(name: str, classes: str, grade: str, more: list[str]) -> DifferingObject:
    schema, _, table = name.partition(".")
    said = dict(each.split("=", 1) for each in more if "=" in each)
    return DifferingObject(
        kind="table",
        schema=schema,
        name=table,
        classes=tuple(classes.split(", ")),
        is_proved=grade == "proved",
        is_filtered="filtered" in more,
        may_be_of_another_source="elsewhere" in more,
        is_severe="severe" in more,
        rows="the applier stops with 1146" if "severe" in more else "row events are applied",
        errors=tuple(int(each) for each in said.get("errors", "").split(",") if each),
        causes=tuple(each for each in (said.get("cause"),) if each),
        pending=gtids(said.get("pending", "")),
        is_searched="unsearched" not in more,
        made_by=(),
        changes=(),
    )
