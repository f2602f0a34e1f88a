"""Transactions as SQL for a plan: for a step, and for the file that saves them.

A plan is UTF-8 text for the ordinary client. A transaction with other SQL (statements in another
character set, carriage returns inside texts) is refused here, with the command that writes it:
`gtid-audit binlog show --redo`.
"""

from collections.abc import Iterable
from dataclasses import replace

from repair.content.transaction_content import TransactionContent
from repair.model.strategy_case import SavedContent
from repair.sql.replay import Replayed
from repair.sql.replay_script import Direction, script_lines
from topology.catalogue.findings import Finding

_BY_COMMAND = "write it with: gtid-audit binlog show SET SERVER --redo"
# The client without --binary-mode changes or refuses these inside texts.
_NOT_IN_TEXT = ("\r", "\0")


class CannotSave(Exception):
    """Why transactions are not written as SQL, for the operator."""


def saved_content(finding: Finding, content: TransactionContent | None) -> SavedContent:
    """Return the file that redoes the transactions under new GTIDs. Raises CannotSave."""
    if content is None or content.read_from is None:
        raise CannotSave(content.unread if content is not None else "no log was read")
    missing = finding.gtid_set - content.wanted
    if content.unread or missing:
        raise CannotSave(content.unread or f"{missing.shortened()} was not read")
    wanted = [
        each for each in content.redo if each.gtid is not None and each.gtid in finding.gtid_set
    ]
    check_plain(content.redo)
    if not wanted:
        raise CannotSave("its transactions were not read as SQL")
    renewed = [replace(each, gtid=None) for each in wanted]
    text = "\n".join(script_lines(Direction.REDO, renewed)) + "\n"
    return SavedContent(f"content-of-{finding.code}-{finding.id}.sql", text)


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
