"""Transactions as SQL for a plan: for a step, and for the file that saves them.

A plan is UTF-8 text for the ordinary client. A transaction with other SQL (statements in another
character set, carriage returns inside texts) is refused here, with the command that writes it:
`gtid-audit binlog show --redo`. The same code writes the file that saves them, if no text can be
part of the plan: in another character set, with carriage returns, or more than a plan reads.
"""

from collections.abc import Iterable
from dataclasses import replace

from gtid import GtidSet
from repair.content.transaction_content import TransactionContent
from repair.model.strategy_case import SavedContent, StreamedContent
from repair.sql.replay import Replayed
from repair.sql.replay_script import Direction, script_lines
from topology.catalogue.findings import Finding

_BY_COMMAND = "write it with: gtid-audit binlog show SET SERVER --redo"
# The client without --binary-mode changes or refuses these inside texts.
_NOT_IN_TEXT = ("\r", "\0")


class CannotSave(Exception):
    """Why transactions are not written as SQL, for the operator."""


def saved_content(
    finding: Finding, wanted_gtids: GtidSet, content: TransactionContent | None
) -> SavedContent:
    """Return the file that redoes the transactions under new GTIDs. Raises CannotSave."""
    if content is None or content.read_from is None:
        raise CannotSave(content.unread if content is not None else "no log was read")
    missing = wanted_gtids - content.wanted
    if content.unread or missing:
        raise CannotSave(content.unread or f"{missing.shortened()} was not read")
    wanted = [each for each in content.redo if each.gtid is not None and each.gtid in wanted_gtids]
    check_plain(content.redo)
    if not wanted:
        raise CannotSave("its transactions were not read as SQL")
    renewed = [replace(each, gtid=None) for each in wanted]
    text = "\n".join(script_lines(Direction.REDO, renewed)) + "\n"
    return SavedContent(_file_name(finding), text)


def streamed_content(finding: Finding, server: str, gtids: GtidSet) -> StreamedContent:
    """Return the same file, to be written from the log of a server together with the plan."""
    return StreamedContent(_file_name(finding), finding.id, server, gtids)


def _file_name(finding: Finding) -> str:
    return f"content-of-{finding.code}-{finding.id}.sql"


def check_plain(transactions: Iterable[Replayed]) -> None:
    """Raise CannotSave if a transaction cannot be part of a plan's text."""
    for each in transactions:
        if each.problem is not None:
            raise CannotSave(f"{each.label}: {each.problem}")
        text = "\n".join(each.lines)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise CannotSave(f"{each.label}: not UTF-8; {_BY_COMMAND}") from error
        if any(character in text for character in _NOT_IN_TEXT):
            raise CannotSave(f"{each.label}: a text with control characters; {_BY_COMMAND}")
