"""Explains a text or a code: what it means, why it happens, what to do.

1. A catalogue code is explained from the catalogue; an error number or a text from error_texts.py.
2. GTID sets quoted in a text are parsed and shown as sets; of two, what only one of them has.
3. A text that matches no row is reported as unknown, with what to read instead; nothing is guessed.
"""

import re
from dataclasses import dataclass
from typing import Final

from topology.catalogue.error_row import ErrorText
from topology.catalogue.error_texts import FRAMES, NUMBERS, TEXTS, row_of
from topology.catalogue.quoted_sets import (
    EXTRA,
    FAILED,
    SENT,
    QuotedSet,
    compared_sets,
    quoted_sets,
)
from topology.catalogue.verdict_table import CATALOGUE, CatalogueEntry, UnknownCode, entry_of

_BLANKS = re.compile(r"\s+")
_CODE = re.compile(r"[A-Za-z][0-9]{1,2}")
_NUMBER = re.compile(r"(?:error\s*|errno\s*)?(?:MY-0*)?([0-9]{4,6})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a text or a code means."""

    title: str
    meaning: str
    cause: str
    advice: tuple[str, ...]
    code: str | None  # the catalogue code an audit reports for it
    gtid_sets: tuple[QuotedSet, ...] = ()  # quoted in the text
    computed_sets: tuple[QuotedSet, ...] = ()  # from two that are quoted
    entry: CatalogueEntry | None = None  # the row, if a code was asked for and not a text


READ_INSTEAD: Final = (
    (
        "The lines around it in the server's error log: SELECT * FROM"
        " performance_schema.error_log ORDER BY LOGGED DESC LIMIT 20 (8.0.22 and later)."
    ),
    "The workers' errors: SELECT * FROM performance_schema.replication_applier_status_by_worker.",
    "An audit of both servers, which needs no text: gtid-audit pair DSN_A DSN_B.",
)
READ_IT: Final = "Read it in the log of the source"
# The next step for a set that is quoted or computed.
_STEPS: Final = {
    FAILED: READ_IT + ": gtid-audit binlog show '{gtid}' DSN_OF_SOURCE.",
    SENT: "Ask every server whether it can still serve this replica: gtid-audit handshake --offered"
    " '{gtid}' DSN DSN.",
    EXTRA: "Read what only the member has: gtid-audit binlog show '{gtid}' DSN_OF_MEMBER.",
}
_NO_RULE: Final = "No audit reports this code."


class Unexplained(LookupError):
    """No row knows this text."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= 120 else text[:117] + "..."  # noqa: PLR2004 - one line
        super().__init__(
            f"no explanation for {shown!r}: expected a catalogue code ({', '.join(CATALOGUE)}), an"
            " error number, or the text as the server printed it"
        )


def explain(text_or_code: str) -> Explanation:
    """Explain a catalogue code, an error number, or an error text of any MySQL version.

    Raises:
        Unexplained: no row matches it.
        UnknownCode: it has the shape of a code, but no such code exists.
    """
    text = _BLANKS.sub(" ", text_or_code).strip()
    if _CODE.fullmatch(text):
        return _of_entry(entry_of(text))
    number = _NUMBER.fullmatch(text)
    if number is not None:
        title = NUMBERS.get(int(number[1]))
        row = next((row for row in TEXTS if row.title == title), None)
    else:
        row = row_of(text)
    if row is None:
        raise Unexplained(text)
    return _of_text(row, text)


def explain_error(number: int, text: str) -> Explanation | None:
    """Explain the error of a thread; return None if neither its text nor its number is known.

    The text decides, because one number can have several causes. The number decides where the text
    is not known, and where it is only a frame around an error that is not known.
    """
    found = _or_none(text)
    if found is None or (found.title in FRAMES and number != 0):
        return _or_none(str(number)) or found
    return found


def _or_none(text: str) -> Explanation | None:
    try:
        return explain(text)
    except (Unexplained, UnknownCode):
        return None


def _of_entry(entry: CatalogueEntry) -> Explanation:
    """Return what a code means, and how to answer it; without a rule, which command reports it."""
    return Explanation(
        title=f"{entry.code}: {entry.name}",
        meaning=entry.means if entry.has_rule else f"{entry.means} {_NO_RULE}",
        cause=entry.arises,
        advice=tuple(
            f"{strategy.name}: {strategy.why}. Risk: {strategy.risk}."
            for strategy in entry.strategies
        )
        if entry.has_rule
        else (entry.proof,),
        code=entry.code,
        entry=entry,
    )


def _of_text(row: ErrorText, text: str) -> Explanation:
    entry = CATALOGUE[row.code] if row.code is not None else None
    quoted = quoted_sets(text)
    computed = compared_sets(quoted)
    return Explanation(
        title=row.title,
        meaning=row.means,
        cause=entry.arises if entry is not None else "",
        advice=(*row.advice, *_steps((*quoted, *computed))),
        code=row.code,
        gtid_sets=quoted,
        computed_sets=computed,
    )


def _steps(sets: tuple[QuotedSet, ...]) -> list[str]:
    return [_STEPS[what].format(gtid=gtids) for what, gtids in sets if gtids and what in _STEPS]
