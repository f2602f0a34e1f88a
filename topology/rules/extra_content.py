"""What extra transactions would change, as text of the findings about them (E1, E3, H7, J3).

1. It comes from the binary logs of the server that has them (topology/questions/log_questions.py).
   Nothing is decided by it: what a plan leaves out, a plan reads.
2. Of a large set only a part was read. The text says which part, and never describes the rest.
3. A set that is purged, or of a stored or offline audit without logs, has no text.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gtid import GtidSet
from gtid.counted_nouns import counted
from topology.readings.content_class import ContentClass
from topology.readings.history_evidence import TABLES_MAX, ExtraTransaction
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import many

_TABLES_SHOWN_MAX: Final = 4
_WORDS: Final = {
    ContentClass.DATA: "data",
    ContentClass.DDL: "DDL",
    ContentClass.HARMLESS: "upkeep or heartbeats",
    ContentClass.EMPTY: "empty",
    ContentClass.UNREAD: "not known",
}


def content_text(holder: ServerSnapshot, gtids: GtidSet) -> str:
    """Return what these transactions would change, as a sentence; "" if none of them was read."""
    evidence = holder.history_evidence
    if evidence is None:
        return ""
    read = [each for each in evidence.extras if each.gtid <= gtids]
    if not read:
        unread = evidence.extras_unread
        return f" Their content was not read from {holder.name}: {unread}." if unread else ""
    found = GtidSet.union_of(each.gtid for each in read)
    what = "Content:" if found == gtids else f"Content of {many(found)} of these:"
    return f" {what} {_counted(read)}{_tables(read)}, {_times(read)}."


def _counted(read: Sequence[ExtraTransaction]) -> str:
    counts = Counter(each.content for each in read)
    kinds = [(words, counts[kind]) for kind, words in _WORDS.items() if counts[kind]]
    if len(kinds) == 1:
        return kinds[0][0]
    return ", ".join(f"{count:,} {words}" for words, count in kinds)


def _tables(read: Sequence[ExtraTransaction]) -> str:
    """Return the rows by table, most first, in parentheses; "" if no row is listed."""
    rows: Counter[str] = Counter()
    for each in read:
        for changed in each.rows:
            rows[changed.table] += changed.count
    ordered = sorted(rows.items(), key=lambda each: (-each[1], each[0]))
    if not ordered:
        return ""
    shown = [f"{name}: {_rows(count)}" for name, count in ordered[:_TABLES_SHOWN_MAX]]
    left = len(ordered) - len(shown)
    if left:
        is_cut = any(len(each.rows) == TABLES_MAX for each in read)
        shown.append(f"{'at least ' if is_cut else ''}{counted(left, 'other table')}")
    return f" ({'; '.join(shown)})"


def _rows(count: int) -> str:
    return counted(count, "row")


def _times(read: Sequence[ExtraTransaction]) -> str:
    first = min(each.committed_at for each in read)
    last = max(each.committed_at for each in read)
    if f"{first:%F %T}" == f"{last:%F %T}":
        return f"committed {first:%F %T} UTC"
    end = f"{last:%T}" if first.date() == last.date() else f"{last:%F %T}"
    return f"committed {first:%F %T} to {end} UTC"
