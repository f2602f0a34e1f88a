"""The content of a finding's transactions: classes, rows, and the current state of the rows.

How it works
------------
A GTID set alone does not show whether a transaction may be declared unneeded. So gtid-audit first
reads the binary log of a server that still has the transactions. Every transaction gets one class
(topology/readings/transaction_parts.py):

    EMPTY      nothing between BEGIN and COMMIT
    HARMLESS   rows of a heartbeat table or of server-maintained tables in `mysql`; FLUSH, ANALYZE
    DDL        definitions, accounts
    DATA       rows or statements of any other table
    UNREAD     not in a log that could be read, or not decoded; `unread` has the reason

The classes are disjoint, and their union is the wanted set. Only EMPTY and HARMLESS may be declared
unneeded without a decision by the operator (`is_disposable`).

Rows are folded to their **net change**: for each key, the row before the first and after the last
of the transactions. The current rows of one server are then in one of three states:

    all rows are as before    the transactions can be applied there without a conflict
    all rows are as after     their effect is there already
    neither                   applying them would stop the applier or overwrite newer rows

Folding row by row is necessary. A transaction that inserts a row and a later one that deletes it
leave nothing, although neither of the two alone matches the current rows. Such a row is kept: it
must be absent, because the insert fails on a server that has a row with its key. The intermediate
states of a row are kept as well, because they may conflict with another row on a unique key. If
rows cannot be folded (a table without a key, statements, partial JSON, images without a key), the
result is UNREAD with the reason; nothing is guessed. Other modules read logs and rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

from binlog.quoting import quote_identifier
from binlog.rows.json_values import JsonDiffs
from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, Image, RowChanges, Value
from binlog.transactions import TableChange
from gtid import GtidSet
from repair.content.created_tables import Created, is_new
from repair.content.row_versions import RowVersions
from repair.content.waiting_ddl import Ddl
from repair.sql.replay import Replayed
from repair.sql.row_literals import condition
from topology.readings.content_class import ContentClass

_NAMED_MAX: Final = 3  # rows that a text names


class RowState(Enum):
    """How the rows of one server compare with the net change of the transactions."""

    AS_BEFORE = "as before"  # the transactions can be applied
    AS_AFTER = "as after"  # their effect is already present
    CONFLICT = "conflict"  # neither
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class NetRow:
    """One row of a table with a key: before the first and after the last of the transactions.

    None means that the row did not exist. An image may contain ABSENT where the log has no value.
    """

    table: RowTable
    before: Image | None
    after: Image | None
    # The states of the row between two of their changes, in order. A row that they insert and
    # delete has no net change, but the insert still fails on a server that has such a row. So does
    # a unique key value that the row has only for a moment.
    between: tuple[Image, ...] = ()

    @property
    def key_image(self) -> Image:
        """Return the image whose key finds the row: all of its images have the same key."""
        images = (self.before, self.after, *self.between)
        return next(image for image in images if image is not None)

    @property
    def place(self) -> tuple[str, str, Image]:
        """Return what identifies the row: schema, table and the values of its key."""
        return _place(self.table, self.key_image)

    @property
    def name(self) -> str:
        """Return the table, and the condition that finds the row. Raises CannotRender."""
        return f"{self.table.name} {key_condition(self.table, self.key_image)}"


def first_of(names: Sequence[str]) -> str:
    """Return the first few of some names as text, and how many more there are."""
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"{', '.join(names[:_NAMED_MAX])}{more}"


def key_condition(table: RowTable, image: Image) -> str:
    """Return the condition that finds a row by its key. Raises CannotRender."""
    assert table.key, "only rows with a key are folded"
    return " AND ".join(
        condition(
            table.columns[at],
            quote_identifier(table.columns[at].name or ""),
            image[at],
            is_key=True,
        )
        for at in table.key
    )


class CannotFold(Exception):
    """Why the rows of the transactions have no reliable net change."""


class OutOfOrder(CannotFold):
    """A transaction found a row in another state than the one in which the previous one left it."""


_NO_KEY = (
    "its key is not known: if the account may not read the table, GRANT SELECT ON {} to it, and"
    " plan again"
)


def net_rows(changes: Iterable[RowChanges]) -> tuple[NetRow, ...]:
    """Fold changes, in log order, to one change for each row. Raises CannotFold."""
    net: _Net = {}
    for change in changes:
        table = change.table
        if not table.key or not table.has_names:
            why = "it has no key" if table.key == () else _NO_KEY.format(table.name)
            raise CannotFold(f"{table.name}: {why}")
        for row in change.rows:
            after = row.after
            if row.before is not None and after is not None:
                after = _completed(row.before, after)
            _check(table, row.before, after)
            if _same_key(table, row.before, after):
                _fold(net, table, row.before, after)
                continue
            if row.before is not None:
                _fold(net, table, row.before, None)
            if after is not None:
                _fold(net, table, None, after)
    return tuple(replace(row, between=tuple(between)) for row, between in net.values())


def rows_that_fold(changes: Iterable[RowChanges]) -> tuple[NetRow, ...]:
    """Fold the changes of each table separately, and omit the tables that cannot be folded."""
    tables: dict[tuple[str, str], list[RowChanges]] = {}
    for change in changes:
        tables.setdefault((change.table.schema, change.table.table), []).append(change)
    found: list[NetRow] = []
    for of_table in tables.values():
        with suppress(CannotFold):  # the caller that folds all of them reports it
            found += net_rows(of_table)
    return tuple(found)


# By schema, table and key: a row, and its intermediate states.
_Net: TypeAlias = dict[tuple[str, str, Image], tuple[NetRow, list[Image]]]


def _fold(
    net: _Net,
    table: RowTable,
    before: Image | None,
    after: Image | None,
) -> None:
    image = before if before is not None else after
    assert image is not None, "a change has a row"
    place = _place(table, image)
    if place not in net:
        net[place] = NetRow(table, before, after), []
        return
    known, between = net[place]
    if not _continues(known.after, before):
        # Other transactions, which are not in the set, changed the row in between.
        raise OutOfOrder(f"{table.name}: two logged changes of a row do not follow from each other")
    if known.after is not None and after is not None:
        after = _completed(known.after, after)
    if known.after is not None:
        between.append(known.after)
    net[place] = replace(known, after=after), between


def _continues(left: Image | None, found: Image | None) -> bool:
    """Return whether a change found a row as the previous change had left it."""
    if left is None or found is None:
        return left is None and found is None
    return all(
        old is ABSENT or new is ABSENT or old == new for old, new in zip(left, found, strict=True)
    )


def _completed(base: Image, changed: Image) -> Image:
    """Return an image of changes, completed with the previous values that MINIMAL images omit."""
    return tuple(old if new is ABSENT else new for old, new in zip(base, changed, strict=True))


def _check(table: RowTable, *images: Image | None) -> None:
    for image in images:
        if image is None:
            continue
        if any(image[at] is ABSENT for at in table.key or ()):
            raise CannotFold(f"{table.name}: the log does not contain the key of every row")
        if any(isinstance(value, JsonDiffs) for value in image):
            raise CannotFold(f"{table.name}: the log contains partial JSON values")


def _same_key(table: RowTable, left: Image | None, right: Image | None) -> bool:
    return left is not None and right is not None and _key(table, left) == _key(table, right)


def _place(table: RowTable, image: Image) -> tuple[str, str, Image]:
    return table.schema, table.table, _key(table, image)


def _key(table: RowTable, image: Image) -> tuple[Value, ...]:
    return tuple(image[at] for at in table.key or ())


@dataclass(frozen=True, slots=True)
class RowsOn:
    """The current state of the transactions' rows on one server."""

    state: RowState
    why: str = ""  # the reason for UNREAD, the first conflicting rows for CONFLICT
    is_bound: bool = False  # UNREAD, because foreign keys link rows of other tables
    is_unlike: bool = False  # UNREAD: a table has other columns, types or members here
    is_missing: bool = False  # one of their tables does not exist, or this account cannot see it
    is_absent: bool = False  # certainly none of their tables exists, so none of their rows does
    meets: str = ""  # CONFLICT: unique keys of other rows with which inserts conflict
    is_in_part: bool = False  # CONFLICT: each row is as before or as after, but not all alike
    has_some: bool = False  # CONFLICT: at least one row that they change is as after
    # Each row is as on the finding's source where others changed it. And nothing but these
    # transactions was missing here of what the source had executed when both were read.
    is_like_source: bool = False
    # These rows then: with what the source's log has made of them since.
    now: tuple[NetRow, ...] = ()
    is_created: bool = False  # CONFLICT: everything they create exists, without rows
    off: tuple[NetRow, ...] | None = None  # rows not as before; None: not known for each row
    # Rows that are not as after, and equal on the finding's source, although nothing that is to
    # arrive changes them: both have a later version. Fetched again, they would get the older one.
    overtaken: tuple[NetRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionContent:
    """The content of a finding's transactions, as one server's binary log has it.

    Invariant: the sets of `classes` are disjoint.
    """

    read_from: str | None  # None: no server that could be read has them
    classes: Mapping[ContentClass, GtidSet]
    unread: str = ""  # why some or all could not be read
    unwritable: str = ""  # why its SQL cannot be written from the log either; "": not tried
    tables: tuple[TableChange, ...] = ()  # rows counted over all transactions
    statements: tuple[str, ...] = ()  # the first statements that are not row changes
    committed_first: datetime | None = None
    committed_last: datetime | None = None
    rows: tuple[NetRow, ...] | None = None  # None: not folded, see `rows_unread`
    rows_unread: str = ""
    is_out_of_order: bool = False  # the reason in `rows_unread`
    # If there are no `rows`: those of the tables that can be folded, before the first statement.
    # And the servers on which these are not as before the transactions, with the reason.
    rows_in_part: tuple[NetRow, ...] = ()
    misfits_in_part: Mapping[str, str] = field(default_factory=dict)
    # What they create, if they change no other definitions, followed by the rows.
    created: tuple[Created, ...] = ()
    rows_beside_created: tuple[NetRow, ...] | None = None
    rows_on: Mapping[str, RowsOn] = field(default_factory=dict)  # by server
    # Conflicting rows of the finding's replica, as the transactions expect them and as they are.
    expected: tuple[RowVersions, ...] = ()
    # The form of the rows in the log (logged_form.py): columns are omitted, or rows are complete
    # that MINIMAL images would not have complete. Updates that may contain differences of JSON
    # values, and other updates.
    has_cut_rows: bool = False
    has_whole_rows: bool = False
    has_partial_updates: bool = False
    has_plain_updates: bool = False
    has_loose_documents: bool = False  # JSON that another server writes with other bytes
    has_rewritten_statements: bool = False  # the mysql client may send other text
    redo: tuple[Replayed, ...] = ()  # in log order, under their GTIDs
    row_tables: tuple[RowTable, ...] = ()  # of every row, folded or not
    ddl: tuple[Ddl, ...] = ()
    unlike_on: Mapping[str, str] = field(default_factory=dict)  # why definitions do not match
    # What a redo would do differently: more columns, another default character set.
    otherwise_on: Mapping[str, str] = field(default_factory=dict)
    # Empty or harmless in the log that was read, and perhaps another transaction on these servers.
    doubtful: Mapping[str, GtidSet] = field(default_factory=dict)
    # By server: schema, table and engine of the nontransactional tables.
    no_rollback_on: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    # What the source of the channel logged before the file in which they begin.
    logged_before: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    # By server: which later work of its own, that the other side does not have, changed the same
    # rows, or may have.
    later_work: Mapping[str, str] = field(default_factory=dict)
    # By the server_id of their events: a receiver drops events with its own server_id.
    server_ids: Mapping[int, GtidSet] = field(default_factory=dict)
    # Servers that have them as well, and other rows under them in their logs (doubted_content.py).
    other_rows_on: tuple[str, ...] = ()
    # Logged as statements behind them in the same log, and why others may be: they may have met
    # other rows where these transactions are missing (logged_content.py).
    statements_since: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    unread_since: str = ""

    def __post_init__(self) -> None:
        union = GtidSet.union_of(self.classes.values())
        count = sum(gtids.gtid_count for gtids in self.classes.values())
        assert union.gtid_count == count, "every transaction has one class"
        read_by_name = ("classes", "rows_on", "misfits_in_part", "unlike_on", "otherwise_on")
        for name in (*read_by_name, "doubtful", "no_rollback_on", "later_work"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def of_class(self, *classes: ContentClass) -> GtidSet:
        """Return the transactions of some classes."""
        return GtidSet.union_of(self.classes.get(each, GtidSet()) for each in classes)

    def needing_decision(self, gtids: GtidSet) -> GtidSet:
        """Return which of these must not be declared unneeded without the operator's decision."""
        return gtids - self.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)

    def state_on(self, server: str) -> RowsOn:
        """Return the state of the rows on a server; UNREAD if they were not compared there."""
        return self.rows_on.get(server, RowsOn(RowState.UNREAD, "its rows were not read"))

    @property
    def rows_of_old_tables(self) -> tuple[NetRow, ...]:
        """Return the rows that can be compared before the transactions: not those of new tables."""
        rows = self.rows if self.rows is not None else self.rows_beside_created or ()
        return tuple(
            row for row in rows if not is_new(row.table.schema, row.table.table, self.created)
        )

    @property
    def wanted(self) -> GtidSet:
        """Return all requested transactions."""
        return GtidSet.union_of(self.classes.values())


def nothing_read(wanted: GtidSet, why: str) -> TransactionContent:
    """Return the content of transactions that no log shows."""
    return TransactionContent(None, {ContentClass.UNREAD: wanted}, unread=why)


def described(content: TransactionContent, wanted: GtidSet) -> str:
    """Return a sentence that describes what the transactions did, for readers of a plan."""
    return "; ".join(_parts(content, wanted))


def _parts(content: TransactionContent, wanted: GtidSet) -> Iterator[str]:
    for each in ContentClass:
        gtids = content.of_class(each) & wanted
        if gtids:
            why = f" ({content.unread})" if each is ContentClass.UNREAD and content.unread else ""
            yield f"{each.value}: {gtids.shortened()}{why}"
    if content.tables:
        yield "rows: " + ", ".join(map(_of_table, content.tables))
    if content.statements:
        yield "statements: " + ", ".join(f"`{each}`" for each in content.statements)
    if content.committed_first is not None and content.committed_last is not None:
        first, last = (
            f"{each:%Y-%m-%d %H:%M:%S}"
            for each in (content.committed_first, content.committed_last)
        )
        yield f"committed {first} UTC" if first == last else f"committed {first} to {last} UTC"


def _of_table(table: TableChange) -> str:
    parts = (
        (table.rows_written, "inserted"),
        (table.rows_updated, "updated"),
        (table.rows_deleted, "deleted"),
    )
    counts = ", ".join(f"{count:,} {word}" for count, word in parts if count)
    return f"{table.schema}.{table.table} ({counts or 'no row'})"
