"""Reasons to refuse a redo of statements.

1. A statement has an effect that no guard checks (unguarded.py).
2. A statement creates an event, or a trigger before rows that would fire it.
"""

from __future__ import annotations

from collections.abc import Sequence

from repair.sql.replay import Replayed

_BY_HAND = "`gtid-audit binlog show SET SERVER --redo --keep-gtids` (SERVER is the DSN of one that"


def unguarded_statements(redone: Sequence[Replayed], server: str) -> str:
    """Return why a script does not redo these statements; "" if there are none."""
    found = [each for each in redone if each.unguarded]
    if not found:
        return ""
    first, more = found[0], f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"{first.label} has the statement `{first.unguarded}`{more}: no script can check what it"
        f" would change on {server}, which may have other rows by now. Compare the data. Then redo"
        " it by hand: `gtid-audit binlog show SET SERVER --redo --keep-gtids` (SERVER is the DSN"
        " of a server that has it) writes the SQL"
    )


def acts_again(redone: Sequence[Replayed]) -> str:
    """Return the reason; "" if nothing would happen twice."""
    for at, each in enumerate(redone):
        for created in each.creates:
            if created.is_event:
                return (
                    f"{each.label} has the statement `{created.statement}`: an event runs on each"
                    " server where it is enabled, and would do its work twice. Create it by hand"
                    " where it must run, and disable it elsewhere (ALTER EVENT … DISABLE), both"
                    " after `SET SESSION sql_log_bin = 0`. Use up its GTID with an empty"
                    " transaction. Then plan again for the other transactions"
                )
            for other in redone[at + 1 :]:
                tables = [(table.schema, table.table) for table in other.tables]
                if created.fires_on(tables):
                    return (
                        f"{each.label} has the statement `{created.statement}`, and {other.label}"
                        " writes rows that would fire this trigger: the log already contains what"
                        f" the trigger wrote, and it would be written twice. By hand: {_BY_HAND}"
                        f" has them) writes the redo script. Run it without {each.label} first,"
                        f" then only for {each.label}"
                    )
    return ""
