r"""The manual page gtid-audit(1), made from the command line itself. Pure.

The source is in the macros of man(7), as UTF-8. A text is escaped so that none of it is a request:
`\` becomes `\e`, `-` becomes `\-` (a hyphen that can be copied), and a line never begins with `.`
or `'`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gtid_audit.described_commands import DescribedCommand, DescribedParameter

_CODING: Final = r".\" -*- coding: utf-8 -*-"
_DESCRIPTION: Final = (
    "gtid-audit reads the GTID state and the binary logs of MySQL servers, finds what they disagree"
    " about, and writes the repair. Only `repair apply`, `repair resume` and `reconcile --yes`"
    " write to a server. What could not be read is UNKNOWN, never OK."
)
_STATUS: Final = (
    ("0", "OK, or the predicate of `sets` is true"),
    ("1", "WARNING, or the predicate is false"),
    ("2", "CRITICAL"),
    ("3", "UNKNOWN: something could not be read"),
    ("64", "wrong usage, configuration or operand"),
    ("70", "a defect of gtid-audit"),
    ("130", "interrupted"),
    ("141", "the reader of the output closed it"),
)
_ENVIRONMENT: Final = (
    "Every option can be set by a variable, except those that ask a question and those that permit"
    " a change of servers (--yes, --approve). GTID_AUDIT_PAIR_TIMEOUT sets --timeout of `pair`,"
    " GTID_AUDIT_TIMEOUT that of every command. Flags are 1 or 0. Several values are separated by"
    " spaces. The command line wins over a variable, and an empty variable is not set."
)
_OTHERS: Final = (
    ("GTID_AUDIT_PASSWORD", "the password of accounts that have none in an option file"),
    ("NO_COLOR", "if it is not empty, no colors are written"),
)


def manual_page(
    commands: Sequence[DescribedCommand], options: Sequence[DescribedParameter], *, version: str
) -> str:
    """Return the source of the page."""
    lines = [
        _CODING,
        f'.TH GTID\\-AUDIT 1 "" "gtid\\-audit {version}" "User Commands"',
        ".SH NAME",
        r"gtid\-audit \- find where MySQL servers disagree about GTIDs, and write the repair",
        ".SH SYNOPSIS",
        r".B gtid\-audit",
        r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(_DESCRIPTION),
        ".SH OPTIONS",
        *_paragraphs("Every command also has --quiet, --no-color and --debug."),
        *_listed(options),
        ".SH COMMANDS",
    ]
    for command in commands:
        lines += _command(command)
    lines += [".SH EXIT STATUS", *_table(_STATUS), ".SH ENVIRONMENT", *_paragraphs(_ENVIRONMENT)]
    lines += _table(_OTHERS)
    lines += [".SH SEE ALSO", r"\fBmysql\fR(1), \fBmysqlbinlog\fR(1)"]
    return "\n".join(lines) + "\n"


def _command(command: DescribedCommand) -> Iterator[str]:
    name = " ".join(command.path)
    yield f".SS {_escaped(name)}"
    words = [_usage(each) for each in command.parameters if not each.is_option]
    required = [_option(each) for each in command.options if each.is_required]
    usage = " ".join([_bold(f"gtid-audit {name}"), *required, r"[\fIOPTIONS\fR]", *words])
    yield usage
    yield ".PP"
    yield from _paragraphs(command.text)
    if command.epilog:
        yield ".PP"
        yield from _paragraphs(command.epilog)
    yield from _listed(command.parameters)


def _usage(argument: DescribedParameter) -> str:
    name = rf"\fI{_escaped(argument.names[0])}\fR"
    return name if argument.is_required else f"[{name}]"


def _option(option: DescribedParameter) -> str:
    value = rf" \fI{_escaped(option.placeholder)}\fR" if option.placeholder else ""
    return _bold(option.long_name) + value


def _listed(parameters: Iterable[DescribedParameter]) -> Iterator[str]:
    for each in parameters:
        yield ".TP"
        if each.is_option:
            value = rf" \fI{_escaped(each.placeholder)}\fR" if each.placeholder else ""
            yield ", ".join(map(_bold, each.names)) + value
        else:
            yield rf"\fI{_escaped(each.names[0])}\fR"
        yield from _paragraphs(each.text or "-")


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield ".TP"
        yield _bold(name)
        yield from _paragraphs(text)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a text as filled lines; a blank line begins a paragraph."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    for number, paragraph in enumerate(filter(None, paragraphs)):
        if number:
            yield ".PP"
        escaped = _escaped(paragraph)
        yield rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")
