r"""The set that a consumer, a backup or a clone offers, in the text in which it is stored.

A text is a GTID set, or contains one. The keys and labels are those that these programs write:

=====================  ============================================================================
a GTID set             MySQL's text, as everywhere
Debezium, Flink CDC    JSON with `gtids` or `gtidSet`: a Kafka Connect offset (after its key), a
                       checkpoint, a savepoint
Canal                  JSON with `gtid` below `postion` (its spelling): `meta.dat`
Maxwell                `gtid_set`: JSON, or a row of its table `positions`
TiDB DM                `binlog_gtid`, `syncerBinlogGtid`: its checkpoint, or `query-status`
Percona XtraBackup     `xtrabackup_binlog_info`: file, position and set, separated by tabs
mysqldump, mydumper    `SET @@GLOBAL.GTID_PURGED=…`; `executed_gtid_set = …` in `metadata`
clone                  `GTID_EXECUTED` of performance_schema.clone_status, printed with `\G`
=====================  ============================================================================

A text with two different sets is refused: which of them the program offers is not known.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from gtid import GtidError, GtidSet

_KEYS: Final = frozenset(
    {
        *("gtids", "gtidset", "gtid_set", "binlog_gtid", "syncerbinloggtid"),
        *("gtid_executed", "executed_gtid_set", "gtid_purged"),
    }
)
_SET: Final = r"[0-9A-Fa-f][0-9A-Za-z_:,\s-]*"
_PURGED: Final = re.compile(
    r"SET\s+@@GLOBAL\.GTID_PURGED\s*=\s*(?:/\*!\d+\s+'\+'\s*\*/\s*)?'([^']*)'", re.IGNORECASE
)
_LABELLED: Final = re.compile(
    rf"^\s*(gtid_executed|executed_gtid_set|gtid_set|binlog_gtid)\s*[:=]\s*[\"']?({_SET})",
    re.IGNORECASE | re.MULTILINE,
)
_OF_CANAL: Final = ("postion", "position")
_BEGINS: Final = re.compile(r"[{\[]")
_DELETED: Final = re.compile(r"\s*\bnull\b")
_UNFINISHED: Final = re.compile(
    r"^\s*STATE:\s*(?:Not Started|In Progress|Failed)", re.IGNORECASE | re.MULTILINE
)
# A stored routine may contain the statement. That of mysqldump follows its comment.
_HAS_ROUTINES: Final = re.compile(r"^DELIMITER\b", re.IGNORECASE | re.MULTILINE)
_PURGED_IN_DUMP: Final = re.compile(
    rf"-- GTID state at the (?:beginning|end) of the backup\s*\n--\s*\n\s*{_PURGED.pattern}",
    re.IGNORECASE,
)
_NEXT_LABEL: Final = re.compile(r"\n\s*(?:[A-Za-z_ ]+\s*[:=]|\*{3,}|[0-9]+ rows? in set)")
_XTRABACKUP: Final = re.compile(rf"\A\S+\.[0-9]+\t[0-9]+\t({_SET})\s*\Z")


class NoSetInText(ValueError):
    """A text without a set that can be read. Shows what is wrong, and where."""


Parse: TypeAlias = Callable[[str, str], GtidSet]


def parsed_set(text: str, where: str) -> GtidSet:
    """Parse a set within the limits of the algebra. Raises NoSetInText, which shows `where`."""
    try:
        return GtidSet.parse(text)
    except GtidError as error:
        raise NoSetInText(f"{where}: {error}") from error


def set_in_text(
    text: str, where: str, parse: Parse = parsed_set, *, is_stored: bool = True
) -> GtidSet:
    """Return the set that a text is or contains. Raises NoSetInText.

    Args:
        text: a set, or what a program stored.
        where: its place, for messages.
        parse: reads one set of the text; it may raise another exception.
        is_stored: it was read from a file or a pipe, so it may be cut off. An empty one is refused.
    """
    if is_stored and not text.strip():
        raise NoSetInText(f"{where}: it is empty")
    try:
        offered = GtidSet.parse(text)
    except GtidError:
        return _contained(text, where, parse)
    if is_stored and text.rstrip().endswith(","):
        raise NoSetInText(f"{where}: it ends with a comma, so the end may be missing")
    return offered


def _contained(text: str, where: str, parse: Parse) -> GtidSet:
    """Return the one set in one of the forms."""
    found = [*_sets_in(text, where, parse)]
    if not found:
        return parse(text, where)  # too large for the first attempt, or its error
    if len({each for _, each in found}) > 1:
        names = ", ".join(dict.fromkeys(name for name, _ in found))
        raise NoSetInText(f"{where}: it has different sets ({names}); use one of them")
    return found[0][1]


def _sets_in(text: str, where: str, parse: Parse) -> Iterator[tuple[str, GtidSet]]:
    """Yield each set that a known form contains, with its label."""
    for label, value in _texts_in(text, where):
        if value.strip():
            yield label, parse(value, f"{where}: {label}")


def _texts_in(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each set in one of the forms, with its label. Raises NoSetInText."""
    if unfinished := _UNFINISHED.search(text):
        raise NoSetInText(f"{where}: the clone is not complete ({unfinished[0].strip()})")
    backup = _XTRABACKUP.match(text)
    if backup is not None:
        yield "xtrabackup_binlog_info", backup[1]
        return
    of_dump = _PURGED_IN_DUMP if _HAS_ROUTINES.search(text) else _PURGED
    labelled = [("GTID_PURGED", found[1]) for found in of_dump.finditer(text)]
    labelled += [
        (found[1], _NEXT_LABEL.split(found[2], maxsplit=1)[0].strip("\"'\n "))
        for found in _LABELLED.finditer(text)
    ]
    yield from labelled
    for document in () if labelled else _documents_in(text, where):
        yield from _values_of(document)


def _documents_in(text: str, where: str) -> Iterator[object]:
    """Yield the JSON documents of a text: an offset of Kafka Connect follows its key.

    Raises NoSetInText for what is cut, and for an offset that was deleted (null after its key).
    """
    decoder, at = json.JSONDecoder(object_pairs_hook=_Pairs), 0
    while found := _BEGINS.search(text, at):
        try:
            document, at = decoder.raw_decode(text, found.start())
        except ValueError as error:
            raise NoSetInText(f"{where}: JSON that cannot be read: {error}") from error
        if _DELETED.match(text, at):
            raise NoSetInText(f"{where}: an offset was deleted (null after its key)")
        yield document


class _Pairs(tuple[tuple[str, object], ...]):
    """The members of a JSON object; a key may occur twice."""

    __slots__ = ()


def _values_of(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts under a known key, with the path to each."""
    if isinstance(document, _Pairs):
        for key, value in document:
            here = f"{path}.{key}" if path else key
            # An event of Debezium has the one GTID of its transaction as `gtid`.
            is_known = key.lower() in _KEYS or (key == "gtid" and path.endswith(_OF_CANAL))
            if is_known and isinstance(value, str):
                yield here, value
            else:
                yield from _values_of(value, here)
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from _values_of(value, f"{path}[{number}]")
