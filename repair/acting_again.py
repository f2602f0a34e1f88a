"""Reasons to refuse a redo that creates an event, or a trigger before rows that would fire it."""

from __future__ import annotations

from collections.abc import Sequence

from repair.replay import Replayed

_BY_HAND = "`gtid-audit binlog show SET SERVER --redo --keep-gtids` (SERVER is the DSN of one that"


def acts_again(redone: Sequence[Replayed]) -> str:
    """Return the reason; "" if nothing would happen twice."""
    for at, each in enumerate(redone):
        for created in each.creates:
            if created.is_event:
                return (
                    f"{each.label} has the statement `{created.statement}`: an event runs on each"
                    " server where it is enabled, and its work would come twice. Create it by hand"
                    " where it is to run, and disable it elsewhere (ALTER EVENT … DISABLE), both"
                    " behind `SET SESSION sql_log_bin = 0`; use up its GTID with an empty"
                    " transaction; then plan again for the others"
                )
            for other in redone[at + 1 :]:
                tables = [(table.schema, table.table) for table in other.tables]
                if created.fires_on(tables):
                    return (
                        f"{each.label} has the statement `{created.statement}`, and {other.label}"
                        " writes rows that would fire this trigger: what it wrote is in the log,"
                        f" and would be written twice. By hand: {_BY_HAND} has them) writes the"
                        f" redo; do it without {each.label} first, then for {each.label} alone"
                    )
    return ""
