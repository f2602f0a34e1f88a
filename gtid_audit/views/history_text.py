"""Shows the episodes of a history file as a table, and writes them as a document."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.report_parts import QUIET, rest_of
from gtid_audit.views.report_text import moment_of, show
from topology.adapters.history_file import Episode
from topology.documents.records import Plain, Record, time_to_text

EPISODES_SHOWN_MAX: Final = 50


def history_document(episodes: Sequence[Episode]) -> Record:
    """Return the JSON document: every episode, open ones first."""
    return {"episodes": [_record(each) for each in episodes]}


def show_history(episodes: Sequence[Episode]) -> None:
    """Show the episodes: open ones first, then the newest of those that ended."""
    still_open = [each for each in episodes if each.ended_at is None]
    ended = [each for each in episodes if each.ended_at is not None]
    ended.sort(key=lambda each: (each.ended_at, each.id), reverse=True)
    about = f"{counted(len(still_open), 'open finding')}, {len(ended):,} ended"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("since", "last seen", "ended", "code", "severity", "where"):
        table.add_column(heading)
    for each in [*still_open, *ended][:EPISODES_SHOWN_MAX]:
        table.add_row(
            moment_of(each.first_seen),
            moment_of(each.last_seen),
            moment_of(each.ended_at) if each.ended_at is not None else "open",
            each.code,
            each.severity.value,
            Text(printable(_where(each))),
        )
    parts: list[RenderableType] = [Text(about, style="bold")]
    if episodes:
        parts.append(table)
    show(*parts, *rest_of(len(episodes), EPISODES_SHOWN_MAX, "findings"))


def _where(episode: Episode) -> str:
    ends = [name for name in (episode.source, episode.replica) if name is not None]
    place = f"{episode.cluster}: {' → '.join(ends)}" if ends else episode.cluster
    return f"{place}, channel {episode.channel}" if episode.channel else place


def _record(episode: Episode) -> Record:
    ending = episode.ending
    return {
        "id": episode.id,
        "code": episode.code,
        "name": episode.name,
        "severity": episode.severity.value,
        "cluster": episode.cluster,
        "source": episode.source,
        "replica": episode.replica,
        "channel": episode.channel,
        "first_seen": _time(episode.first_seen),
        "last_seen": _time(episode.last_seen),
        "ended_at": None if episode.ended_at is None else _time(episode.ended_at),
        "ending": None if ending is None else ending.value,
    }


def _time(moment: datetime) -> Plain:
    return time_to_text(moment)
