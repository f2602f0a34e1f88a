"""Finds what gtid-audit can read in text that was pasted from one server. Pure.

1. It recognises results of the mysql client (pasted_tables.py), errors of statements, lines of an
   error log, the header of a dump, and times. Everything else is skipped: prompts, counts of rows,
   chat. pasted_facts.py decides what the results mean.
2. Each thing that was found has its line, so that a wrong one can be shown.
3. Results without rows are not printed in batch mode. A marker before each statement shows that it
   was executed: a result with the one column `statement`. If the next marker follows directly, the
   statement had no rows. At the end of the file, it may have been cut off, and has no result.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from topology.adapters.offline.pasted_tables import (
    BORDER,
    ROW_HEAD,
    PastedLines,
    PastedTable,
    read_box,
    read_tabbed,
    read_vertical,
)
from topology.adapters.offline.recognised import MARKER, is_read, is_strong
from topology.readings.dialect import LOG_LINE_OF_THREAD

# "mysql> ", "mysql [db]> ", "db1 [(none)]> ", " MySQL  db1:3306 ssl  SQL > ", and "    -> ".
_PROMPT: Final = re.compile(
    r"(?P<new> ?(?:my ?sql|mariadb)\b[^>]{0,80}> ?|[\w.@-]{1,60} ?(?:my ?sql)?> )(?P<text>.*)"
    r"|(?P<more> {2,}(?:->|'>|\">|`>) ?)(?P<rest>.*)",
    re.IGNORECASE,
)
_STATEMENT: Final = re.compile(r"(?:SHOW|SELECT)\s.*", re.IGNORECASE | re.DOTALL)
_STATEMENT_END: Final = re.compile(r"\s*(?:;|\\G|\\g)\s*$")
_COUNT: Final = re.compile(r"\d+ rows? in set\b.*|Query OK\b.*|Bye\s*", re.IGNORECASE)
_EMPTY: Final = re.compile(r"Empty set\b.*", re.IGNORECASE)
_ERROR: Final = re.compile(
    r"ERROR (?P<errno>\d{4,6})(?: \(\w{5}\))?(?: at line \d+)?: (?P<text>.*)"
)
_DASHES: Final = re.compile(r"-{10,}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z")
_LOG_LINE: Final = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)\s+\d+ \[(?P<level>\w+)\] (?P<text>.*)"
)
_OF_THREAD: Final = re.compile(LOG_LINE_OF_THREAD)
# With --set-gtid-purged=COMMENTED the statement is in a comment.
_DUMPED: Final = re.compile(
    r"(?:/\* )?SET @@GLOBAL\.GTID_PURGED ?= ?(?:/\*!\d+ '\+'\*/ ?)?'(?P<text>.*)", re.IGNORECASE
)
_DUMP_VERSION: Final = re.compile(r"-- Server version\s+(?P<text>\S+)")
_ECHO_LINES_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class PastedResult:
    """One result: what was executed, as far as the text shows it, and its table."""

    statement: str
    table: PastedTable


@dataclass(frozen=True, slots=True)
class RefusedStatement:
    """A statement that ended with an error."""

    line: int
    statement: str
    errno: int
    text: str


@dataclass(frozen=True, slots=True)
class LoggedError:
    """A line of an error log: why a replication thread stopped."""

    line: int
    at: str
    is_applier: bool
    channel: str
    errno: int
    text: str


@dataclass(frozen=True, slots=True)
class PastedText:
    """A text without a table of its own, and its line."""

    line: int
    text: str


@dataclass(slots=True)
class PastedOutput:
    """What was found in the text of one server, in the order of its lines."""

    results: list[PastedResult] = field(default_factory=list)
    refused: list[RefusedStatement] = field(default_factory=list)
    logged: list[LoggedError] = field(default_factory=list)
    times: list[PastedText] = field(default_factory=list)
    dumped: list[PastedText] = field(default_factory=list)  # the set of a dump's header
    dump_versions: list[PastedText] = field(default_factory=list)
    cut: list[PastedTable] = field(default_factory=list)  # results that are not complete

    @property
    def is_empty(self) -> bool:
        """Return whether nothing of a server was found: times alone are nothing."""
        return not (
            self.results or self.refused or self.logged or self.dumped or self.dump_versions
        )


def parse_output(text: str) -> PastedOutput:
    """Return what is in a text. Never raises: what is not recognised is skipped."""
    finder = _Finder(PastedLines(re.split(r"\r\n|\n|\r", text)))
    while finder.lines.current is not None:
        finder.step()
    return finder.found


class _Finder:
    """Goes through the lines once. `statement` is what was executed last; "" if not known."""

    def __init__(self, lines: PastedLines) -> None:
        self.lines = lines
        self.found = PastedOutput()
        self._statement = ""
        self._is_marked = False  # the statement was marked, and has no result yet

    def step(self) -> None:
        """Take the current line, or all lines of what begins there."""
        line = self.lines.current
        assert line is not None, "the caller checks that"
        stripped = line.strip()
        if ROW_HEAD.fullmatch(stripped):
            self._take(read_vertical(self.lines, is_end=_is_end, is_known=is_read))
        elif BORDER.fullmatch(stripped):
            self._take(read_box(self.lines, is_end=_is_end))
        elif is_header(line):
            self._take(
                read_tabbed(self.lines, is_end=lambda each: _is_end(each) or is_header(each))
            )
        elif (dumped := _DUMPED.match(stripped)) is not None:
            self._dumped(dumped["text"])
        elif _DASHES.fullmatch(stripped):
            self._echoed()
        else:
            self._line(line, stripped)
            self.lines.at += 1

    def _line(self, line: str, stripped: str) -> None:
        number = self.lines.number
        if (error := _ERROR.match(stripped)) is not None:
            statement, self._is_marked = self._statement, False
            found = RefusedStatement(number, statement, int(error["errno"]), error["text"])
            self.found.refused.append(found)
        elif _EMPTY.match(stripped):
            self._take(PastedTable(number, (), ()))
        elif _TIME.fullmatch(stripped):
            self._end_marked()
            self.found.times.append(PastedText(number, stripped))
        elif (logged := _LOG_LINE.match(stripped)) is not None:
            self._logged(logged)
        elif (version := _DUMP_VERSION.match(stripped)) is not None:
            self.found.dump_versions.append(PastedText(number, version["text"]))
        elif (prompt := _PROMPT.fullmatch(line)) is not None:
            more = f"{self._statement} {prompt['rest']}" if prompt["more"] else prompt["text"]
            self._type(more)
        elif _STATEMENT.fullmatch(stripped):
            self._type(stripped)

    def _type(self, text: str) -> None:
        self._end_marked()
        self._statement = normal_statement(text)

    def _echoed(self) -> None:
        """Read a statement that `mysql -v` prints between two lines of dashes."""
        texts, end = self.lines.texts, self.lines.at + 1
        while end < len(texts) and end - self.lines.at <= _ECHO_LINES_MAX:
            if _DASHES.fullmatch(texts[end].strip()):
                echoed = "\n".join(texts[self.lines.at + 1 : end]).strip()
                if _STATEMENT.fullmatch(echoed):
                    self._type(echoed)
                    self.lines.at = end
                break
            end += 1
        self.lines.at += 1

    def _dumped(self, text: str) -> None:
        begun, parts = self.lines.number, [text]
        while "'" not in parts[-1] and self.lines.at + 1 < len(self.lines.texts):
            self.lines.at += 1
            parts.append(self.lines.texts[self.lines.at])
        self.lines.at += 1
        self.found.dumped.append(PastedText(begun, "\n".join(parts).partition("'")[0]))

    def _logged(self, line: re.Match[str]) -> None:
        thread = _OF_THREAD.search(line["text"])
        if thread is not None and line["level"].upper() == "ERROR":
            self.found.logged.append(
                LoggedError(
                    line=self.lines.number,
                    at=line["at"],
                    is_applier=thread["thread"] == "SQL",
                    channel=thread["channel"] or "",
                    errno=int(thread["errno"]),
                    text=thread["text"],
                )
            )

    def _take(self, table: PastedTable) -> None:
        if table.columns == (MARKER,) and len(table.rows) == 1 and not table.cut:
            self._end_marked()
            marked = table.rows[0][MARKER] or ""
            self._statement, self._is_marked = normal_statement(marked), True
            return
        if table.cut:
            self.found.cut.append(table)
        else:
            self.found.results.append(PastedResult(self._statement, table))
        self._statement, self._is_marked = "", False

    def _end_marked(self) -> None:
        """Note that a marked statement had no rows: something else was executed after it."""
        if self._is_marked:
            table = PastedTable(self.lines.number, (), ())
            self.found.results.append(PastedResult(self._statement, table))
        self._statement, self._is_marked = "", False


def normal_statement(text: str) -> str:
    """Return a statement with single spaces and without its end."""
    return " ".join(_STATEMENT_END.sub("", text.strip()).split())


def is_header(line: str) -> bool:
    """Return whether a line has the names of columns, separated by tabs."""
    names = [each.strip() for each in line.split("\t")]
    return is_strong(names)


def _is_end(line: str) -> bool:
    """Return whether a line ends any result: it is what the client prints next."""
    stripped = line.strip()
    is_next = ROW_HEAD.fullmatch(stripped) or BORDER.fullmatch(stripped) or _COUNT.match(stripped)
    is_message = _EMPTY.match(stripped) or _ERROR.match(stripped) or _TIME.fullmatch(stripped)
    is_other = _LOG_LINE.match(stripped) or _DASHES.fullmatch(stripped)
    return bool(is_next or is_message or is_other or _is_prompt(line))


def _is_prompt(line: str) -> bool:
    found = _PROMPT.fullmatch(line)
    return found is not None and (bool(found["new"]) or bool(found["more"]))
