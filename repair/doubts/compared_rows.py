"""Rows that must still have their compared values when a script runs."""

from collections.abc import Iterable, Iterator

from repair.content.transaction_content import NetRow, TransactionContent
from repair.model.replication_model import ModelChannel, ModelServer
from repair.model.strategy_case import Case


def compared_waiting(
    case: Case, server: ModelServer, channel: ModelChannel
) -> Iterator[TransactionContent]:
    """Yield what waits on a stopped channel, if its rows must still have their compared values."""
    content = case.arrivals.get((server.name, channel.name))
    if not channel.running and content is not None and content.needing_decision(content.wanted):
        yield content


def rows_of(contents: Iterable[TransactionContent]) -> tuple[NetRow, ...]:
    """Return the rows of contents that were compared, each once."""
    rows: dict[tuple[object, ...], NetRow] = {}
    for content in contents:
        for row in content.rows_of_old_tables or content.rows_in_part:
            key = tuple(row.key_image[at] for at in row.table.key or ())
            rows.setdefault((row.table.schema, row.table.table, key, row.before, row.after), row)
    return tuple(rows.values())
