r"""The set that a consumer, a backup or a clone offers, in the form in which it is stored.

`handshake --offered` takes a GTID set, or a text that contains one. The keys and labels are those
that these programs write:

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

A text with two different sets is refused: the operator must choose one.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from gtid import GtidError, GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.sets_from_operands import parsed, text_of

_KEYS: Final = frozenset(
    {
        *("gtids", "gtidset", "gtid", "gtid_set", "binlog_gtid", "syncerbinloggtid"),
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
_NEXT_LABEL: Final = re.compile(r"\n\s*(?:[A-Za-z_ ]+\s*[:=]|\*{3,}|[0-9]+ rows? in set)")
_XTRABACKUP: Final = re.compile(rf"\A\S+\.[0-9]+\t[0-9]+\t({_SET})\s*\Z")


def read_offered(operand: str) -> GtidSet:
    """Return the set in an operand. Raises UsageProblem."""
    text, where = text_of(operand, "A")
    try:
        return GtidSet.parse(text)
    except GtidError:
        found = dict(_sets_in(text, where))
    if not found:
        return parsed(text, where)  # too large for the first attempt, or its error
    if len(set(found.values())) > 1:
        names = ", ".join(found)
        raise UsageProblem(f"{where}: it has different sets ({names}); pass one of them")
    return next(iter(found.values()))


def _sets_in(text: str, where: str) -> Iterator[tuple[str, GtidSet]]:
    """Yield each set that a known form contains, with its label."""
    for label, value in _texts_in(text):
        if value.strip():
            yield label, parsed(value, f"{where}: {label}")


def _texts_in(text: str) -> Iterator[tuple[str, str]]:
    backup = _XTRABACKUP.match(text)
    if backup is not None:
        yield "xtrabackup_binlog_info", backup[1]
        return
    is_labelled = False
    for number, found in enumerate(_PURGED.finditer(text), start=1):
        is_labelled = True
        yield f"GTID_PURGED {number}", found[1]
    for number, found in enumerate(_LABELLED.finditer(text), start=1):
        is_labelled = True
        yield f"{found[1]} {number}", _NEXT_LABEL.split(found[2], maxsplit=1)[0].strip("\"'\n ")
    if not is_labelled:
        for document in _documents_in(text):
            yield from _values_of(document)


def _documents_in(text: str) -> Iterator[object]:
    """Yield the JSON documents of a text: an offset of Kafka Connect follows its key."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        starts = [start for start in (text.find("{", at), text.find("[", at)) if start >= 0]
        if not starts:
            return
        try:
            document, at = decoder.raw_decode(text, min(starts))
        except ValueError:
            at = min(starts) + 1
        else:
            yield document


def _values_of(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts under a known key, with the path to each."""
    if isinstance(document, dict):
        for key, value in document.items():
            here = f"{path}.{key}" if path else str(key)
            if str(key).lower() in _KEYS and isinstance(value, str):
                yield here, value
            else:
                yield from _values_of(value, here)
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from _values_of(value, f"{path}[{number}]")
