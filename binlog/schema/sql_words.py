"""Splits an SQL statement into words, as MySQL's lexer does (sql/sql_lex.cc).

1. This file handles quotes, comments and versions; grammar.py interprets the words.
2. `/*!80023 … */` is part of the statement for a server of that version or later, and a comment for
   an older one. SHOW CREATE TABLE writes such comments for clauses that its own server supports.
3. A statement that cannot be split with certainty raises CannotFollow.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from binlog.errors import BinlogError

# The bits of sql_mode in a Query event (sql/system_variables.h, MODE_…).
REAL_AS_FLOAT = 1 << 0
ANSI_QUOTES = 1 << 2
NO_BACKSLASH_ESCAPES = 1 << 20

# Above any version number: SHOW CREATE TABLE is read as its own server would read it.
ANY_VERSION = 10**9
# Since 8.0 a version in a comment may have six digits (sql_lex.cc, MY_LEX_LONG_COMMENT).
_LONG_DIGITS, _LONG_DIGITS_SINCE = 6, 80000
_SHOWN_CHARACTERS = 40


class CannotFollow(BinlogError):
    """A statement, or one of its changes, cannot be followed with certainty; `why` explains it."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)
        self.why = why


class WordKind(Enum):
    """The type of a word."""

    BARE = "bare"  # a keyword or a name without quotes
    NAME = "name"  # a quoted name, without its quotes
    STRING = "string"  # without its quotes, with escapes decoded
    NUMBER = "number"
    LITERAL = "literal"  # x'41', 0x41, b'01', 0b01, n'text'
    SYMBOL = "symbol"  # one character


@dataclass(frozen=True, slots=True)
class Word:
    """One word and the index of its first character."""

    kind: WordKind
    text: str
    at: int


_BLANK = re.compile(r"[\s\0]+")
_LINE_COMMENT = re.compile(r"(?:#|--(?=[\s\0]|\Z))[^\n]*")
_VERSION = re.compile(r"/\*!(?P<digits>\d{5,6})?")
_LITERAL = re.compile(
    r"[xX]'[0-9A-Fa-f]*'|[bB]'[01]*'|0x[0-9A-Fa-f]+(?![\w$])|0b[01]+(?![\w$])|[nN](?=')"
)
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w$])")
_BARE = re.compile(r"[0-9A-Za-z_$\u0080-\U0010ffff]+")
# MySQL's own escapes: Lex_input_stream, get_text. Any other escaped character means itself.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
# Kept with their backslash, for LIKE.
_KEPT_ESCAPES = frozenset("%_")


def cut_words(
    sql: str, *, sql_mode: int = 0, server_version: int = ANY_VERSION
) -> tuple[Word, ...]:
    """Split a statement. `server_version` is MMmmpp, as in `/*!80023`. Raises CannotFollow."""
    return tuple(_Cutter(sql, sql_mode, server_version).words())


def first_word(sql: str, *, sql_mode: int = 0, server_version: int = ANY_VERSION) -> str:
    """Return a statement's first word in lower case, and read no further. Raises CannotFollow."""
    word = next(_Cutter(sql, sql_mode, server_version).words(), None)
    return word.text.lower() if word and word.kind is WordKind.BARE else ""


class _Cutter:
    def __init__(self, sql: str, sql_mode: int, server_version: int) -> None:
        self._sql = sql
        self._at = 0
        self._open_comments = 0
        self._ansi_quotes = bool(sql_mode & ANSI_QUOTES)
        self._escapes = not sql_mode & NO_BACKSLASH_ESCAPES
        self._version = server_version

    def words(self) -> Iterator[Word]:
        while self._at < len(self._sql):
            if not self._skip():
                yield self._word()
        if self._open_comments:
            raise CannotFollow(why="the statement ends inside a comment")

    def _skip(self) -> bool:
        """Skip white space or a comment if it comes next; return whether it did."""
        for pattern in (_BLANK, _LINE_COMMENT):
            if found := pattern.match(self._sql, self._at):
                self._at = found.end()
                return True
        if version := _VERSION.match(self._sql, self._at):
            self._open(version)
            return True
        if self._sql.startswith("/*", self._at):
            self._pass_comment(self._at + 2)
            return True
        if self._open_comments and self._sql.startswith("*/", self._at):
            self._open_comments -= 1
            self._at += 2
            return True
        return False

    def _open(self, found: re.Match[str]) -> None:
        digits = found["digits"] or "0"
        if len(digits) == _LONG_DIGITS and self._version < _LONG_DIGITS_SINCE:
            raise CannotFollow(why=f"a comment for version {digits}, in a form of later servers")
        if int(digits) <= self._version:
            self._open_comments += 1
            self._at = found.end()
        else:
            self._pass_comment(found.end())

    def _pass_comment(self, start: int) -> None:
        end = self._sql.find("*/", start)
        if end < 0:
            raise CannotFollow(why="the statement ends inside a comment")
        if self._sql.find("/*", start, end) >= 0:
            raise CannotFollow(why="a comment inside a comment")
        self._at = end + 2

    def _word(self) -> Word:
        at, char = self._at, self._sql[self._at]
        if char == "`" or (char == '"' and self._ansi_quotes):
            return Word(WordKind.NAME, self._quoted(char, escapes=False), at)
        if char in "'\"":
            return Word(WordKind.STRING, self._quoted(char, escapes=self._escapes), at)
        for kind, pattern in (
            (WordKind.LITERAL, _LITERAL),
            (WordKind.NUMBER, _NUMBER),
            (WordKind.BARE, _BARE),
        ):
            if found := pattern.match(self._sql, at):
                self._at = found.end()
                if found[0] in ("n", "N") and kind is WordKind.LITERAL:
                    return Word(kind, self._quoted("'", escapes=self._escapes), at)
                return Word(kind, found[0], at)
        self._at += 1
        return Word(WordKind.SYMBOL, char, at)

    def _quoted(self, quote: str, *, escapes: bool) -> str:
        """Read up to the closing quote; two quotes in a row mean one quote in the text."""
        text: list[str] = []
        at = self._at + 1
        while at < len(self._sql):
            char = self._sql[at]
            following = self._sql[at + 1 : at + 2]
            if char == quote:
                if following != quote:
                    self._at = at + 1
                    return "".join(text)
                text.append(quote)
                at += 2
            elif char == "\\" and escapes and following:
                kept = "\\" if following in _KEPT_ESCAPES else ""
                text.append(kept + _ESCAPES.get(following, following))
                at += 2
            else:
                text.append(char)
                at += 1
        shown = self._sql[self._at : self._at + _SHOWN_CHARACTERS]
        raise CannotFollow(why=f"the statement ends inside quotes: {shown}")
