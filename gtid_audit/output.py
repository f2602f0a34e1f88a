"""Writes to standard output and standard error: JSON, lines, warnings, progress.

1. Standard output has the answer and nothing else. Everything else goes to standard error.
2. Progress is shown only if standard error is a terminal.
3. Texts of servers are made printable first: an error text must not control the terminal.
"""

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from typing import Any

from gtid_audit import clock
from gtid_audit.global_options import GLOBAL_OPTIONS
from topology.documents.document_version import versioned

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ERASE = "\r\x1b[K"
_TICK_SECONDS = 0.5
_SECONDS_UNSHOWN = 2  # a step that is shorter does not need a clock
_SPOOLED_BYTES = 64 * 1024**2
_PART_CHARACTERS = 1024**2
# `scheme://user:password@`, or `user:password@` as a word.
_CREDENTIALS = re.compile(
    r"""([A-Za-z][A-Za-z0-9+.-]*:/{1,2})[^\s'"]*:[^\s'"]*@
      | (?<![^\s'"(=])[^\s'"(:@/]+:(?!//)[^\s'"]*@""",
    re.VERBOSE,
)

_takers: list[Callable[[str], None]] = []  # what gets the answer instead of standard output

_running: "list[Progress]" = []  # the line that the terminal shows, if any


class ReaderGone(Exception):
    """The reader of our standard output closed it."""


class OutputLost(Exception):
    """Standard output cannot be written: a full disk, say. The message is for the user."""

    def __init__(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"standard output cannot be written: {reason}; the answer is not whole")


def speak_utf8() -> None:
    """Write UTF-8 in any locale, so that the same input gives the same bytes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def write_json(document: Mapping[str, Any]) -> None:
    """Write one JSON document, with its schema_version."""
    write(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """Return one JSON document as text, with its schema_version."""
    return json.dumps(versioned(document), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


class StreamedList(list[Any]):
    """A list in a JSON document whose items are made, once, while it is written.

    The json module checks whether the list is empty, and then iterates over it.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        super().__init__()
        self._items = items

    def __bool__(self) -> bool:
        """Return whether there is an item. This makes the first one."""
        first = list(islice(self._items, 1))
        self._items = chain(first, self._items)
        return bool(first)

    def __iter__(self) -> Iterator[Any]:
        """Return the items, once."""
        return self._items


def write_streamed_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write a JSON document with StreamedLists of any length, after making all of it."""
    from tempfile import SpooledTemporaryFile

    encoder = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False)
    with SpooledTemporaryFile(
        _SPOOLED_BYTES, "w+", encoding="utf-8", errors="surrogatepass", newline="\n"
    ) as whole:
        for piece in encoder.iterencode(document):
            whole.write(piece)
        whole.write("\n")
        whole.seek(0)
        while part := whole.read(_PART_CHARACTERS):
            write(part)


def write_line(text: str) -> None:
    """Write one line of the answer."""
    write(text + "\n")


def write(text: str) -> None:
    """Write a part of the answer unchanged. Raises ReaderGone and OutputLost."""
    if _takers:
        _takers[-1](text)
        return
    if _running:
        _running[-1].erase()
    with written_answer():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def written_answer() -> Iterator[None]:
    """Convert the errors of standard output. Raises ReaderGone and OutputLost."""
    try:
        yield
    except OSError as error:
        # Otherwise the interpreter would flush again at exit, and report an error.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the end
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from None
        raise OutputLost(error) from error


@contextmanager
def output_taken_by(taker: Callable[[str], None]) -> Iterator[None]:
    """Hand what `write` gets to a taker, instead of writing it."""
    _takers.append(taker)
    try:
        yield
    finally:
        _takers.pop()


@contextmanager
def held_output() -> Iterator[list[str]]:
    """Collect what `write` gets, instead of writing it. Colours are as if it were written."""
    pieces: list[str] = []
    with output_taken_by(pieces.append):
        yield pieces


def warn(text: str) -> None:
    """Print a line on standard error."""
    if _running:
        _running[-1].erase()
    sys.stderr.write(f"gtid-audit: {printable(text)}\n")


def hint(text: str) -> None:
    """Print a line on standard error that only explains; none with --quiet."""
    if not GLOBAL_OPTIONS.is_quiet:
        warn(text)


def printable(text: str) -> str:
    r"""Replace control characters, and characters that change text direction, by `\x1b` and so on.

    Line ends and tabs stay.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def on_one_line(text: str) -> str:
    """Return a name printable on one line: one with a line end must not begin a line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def without_credentials(text: str) -> str:
    """Remove account and password from every part of a text that looks like an address."""
    return _CREDENTIALS.sub(lambda found: f"{found[1] or ''}…@", text)


class Progress:
    """One line on standard error that is overwritten, or no output.

    A thread adds the seconds since the step began, so that a long step (numba compiles kernels,
    Java starts) does not look like a stopped program. `clear` ends the step: a caller
    that prompts the operator, or writes the answer, calls it first.
    """

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._lock = threading.Lock()
        self._text = ""  # the current step; empty: nothing is shown
        self._began = 0.0
        self._ended = threading.Event()

    def say(self, text: str) -> None:
        """Show the current step."""
        if self._is_shown:
            with self._lock:
                self._text, self._began = printable(text), clock.monotonic_seconds()
                self._draw()

    def clear(self) -> None:
        """Clear the line."""
        if self._is_shown:
            with self._lock:
                self._text = ""
                self._draw()

    def erase(self) -> None:
        """Make room for output. The line is drawn again later, if the step still lasts then."""
        with self._lock:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()

    def _draw(self) -> None:
        seconds = int(clock.monotonic_seconds() - self._began)
        waited = f" … {seconds} s" if self._text and seconds >= _SECONDS_UNSHOWN else ""
        room = max(shutil.get_terminal_size().columns - len(waited) - 1, 1)
        sys.stderr.write(f"{_ERASE}{self._text[:room]}{waited}")
        sys.stderr.flush()

    def tick(self) -> None:
        """Draw the step again, if one lasts, with its seconds."""
        with self._lock:
            if self._text:
                self._draw()

    def _redraw(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            self.tick()

    @contextmanager
    def running(self, text: str) -> Iterator[None]:
        """Redraw the line while the context lasts, and clear it at the end.

        The first step is shown only after a tick: a fast command shows nothing.
        """
        if not self._is_shown:
            yield
            return
        self._text, self._began = printable(text), clock.monotonic_seconds()
        ticker = threading.Thread(target=self._redraw, name="progress", daemon=True)
        ticker.start()
        _running.append(self)
        try:
            yield
        finally:
            _running.remove(self)
            self._ended.set()
            ticker.join()
            self.clear()


@contextmanager
def progress(text: str = "working") -> Iterator[Progress]:
    """Provide a progress line that begins with a step, and clear it at the end.

    It is shown if standard error is a terminal, and not with --quiet.
    """
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    line = Progress(is_shown=is_terminal and not GLOBAL_OPTIONS.is_quiet)
    with line.running(text):
        yield line
