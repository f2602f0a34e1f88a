r"""Splits a script into the statements that the `mysql` client would send.

How it works
------------
A script has no parser on the server's side: the client cuts it into statements. A different cut is
a different repair. So this module reads the same marks as the client (client/mysql.cc, add_line):

* a statement ends with the delimiter, outside of quotes and comments;
* `DELIMITER text` at the beginning of a line changes it;
* lines that begin with `-- ` between two statements are comments;
* inside '…' and "…" a backslash escapes the next character, unless the session has
  NO_BACKSLASH_ESCAPES. The server reports that with each answer, and a redone statement may switch
  it off for itself. So statements are read one at a time, each after the previous one has run.

Example, with the delimiter `;`:

    SET NAMES utf8mb4; SET @a = 'x;y';    two statements: `SET NAMES utf8mb4`, `SET @a = 'x;y'`

A splitter at each `;` fails on the second one, and one that reads all of the script before the
first statement runs fails on `'\'` in a session whose sql_mode an earlier statement has set.
"""

import re
from typing import Final

DELIMITER_DEFAULT: Final = ";"
_DELIMITER_LINE: Final = re.compile(r"DELIMITER[ \t]+(\S+)[^\n]*(?:\n|\Z)", re.IGNORECASE)
_COMMENT_LINE: Final = re.compile(r"--(?:[ \t][^\n]*)?(?:\n|\Z)")
_SPACES: Final = " \t\r\n\f\v"
_SPACE: Final = re.compile(f"[{_SPACES}]+")
# What changes how the following characters are read. A delimiter is looked for besides.
# A comment that the server executes (`/*!`) is no comment for the client.
_MARK: Final = re.compile(r"['\"`]|/\*(?!!)|--(?=\s)|#")
_CLOSING: Final = {
    ("'", True): re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL),
    ("'", False): re.compile(r"[^']*'"),
    ('"', True): re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL),
    ('"', False): re.compile(r'[^"]*"'),
    ("`", True): re.compile(r"[^`]*`"),
    ("`", False): re.compile(r"[^`]*`"),
}


class BrokenScript(ValueError):
    """A script ends inside a statement. The message has the line where that statement begins."""


class ScriptReader:
    """Reads the statements of a script, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._delimiter = DELIMITER_DEFAULT

    @property
    def line(self) -> int:
        """Return the line, from 1, up to which the script was read."""
        return self._text.count("\n", 0, self._at) + 1

    def next(self, *, backslash_escapes: bool) -> str | None:
        """Return the next statement without its delimiter; None at the end of the script.

        `backslash_escapes` is False if the session has NO_BACKSLASH_ESCAPES.

        Raises:
            BrokenScript: the script ends before the statement does.
        """
        while (begin := self._begin_of_statement()) is not None:
            end = self._end_of(begin, backslash_escapes=backslash_escapes)
            self._at = end + len(self._delimiter)
            statement = self._text[begin:end].rstrip(_SPACES)
            if statement:
                return statement
        return None

    def _begin_of_statement(self) -> int | None:
        """Skip space, comments and DELIMITER lines. Return where the next statement begins."""
        at = self._at
        while at < len(self._text):
            if found := _SPACE.match(self._text, at) or _COMMENT_LINE.match(self._text, at):
                at = found.end()
            elif self._begins_line(at) and (found := _DELIMITER_LINE.match(self._text, at)):
                self._delimiter = found[1]
                at = found.end()
            else:
                return at
        self._at = at
        return None

    def _begins_line(self, at: int) -> bool:
        return at == 0 or self._text[at - 1] == "\n"

    def _end_of(self, begin: int, *, backslash_escapes: bool) -> int:
        """Return where the delimiter of a statement begins."""
        at = begin
        while True:
            end = self._text.find(self._delimiter, at)
            if end < 0:
                line = self._text.count("\n", 0, begin) + 1
                raise BrokenScript(f"line {line}: the statement has no end")
            mark = _MARK.search(self._text, at, end)
            if mark is None:
                return end
            at = self._after_mark(mark, begin, backslash_escapes=backslash_escapes)

    def _after_mark(self, mark: re.Match[str], begin: int, *, backslash_escapes: bool) -> int:
        """Return where a quoted text or a comment ends."""
        kind, at = mark[0], mark.end()
        if kind in ("--", "#"):
            end = self._text.find("\n", at)
        elif kind == "/*":
            end = self._text.find("*/", at) + 1
        else:
            closed = _CLOSING[kind, backslash_escapes].match(self._text, at)
            end = closed.end() - 1 if closed is not None else -1
        if end <= 0:
            line = self._text.count("\n", 0, begin) + 1
            raise BrokenScript(f"line {line}: the statement has no end")
        return end + 1
