"""Reads the words of a statement one by one: checks the next word, reads a name, skips a clause.

It does not know any statement. An unexpected word raises CannotFollow with its place.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from binlog.schema.changes import TableName
from binlog.schema.sql_words import CannotFollow, Word, WordKind

T = TypeVar("T")

_END = Word(WordKind.SYMBOL, "", -1)
_SHOWN_WORDS = 6


class WordReader:
    """A position in a statement. `accept` reads words if they come next; `expect` requires them."""

    def __init__(self, words: tuple[Word, ...]) -> None:
        self._words = words
        self._at = 0

    @property
    def next(self) -> Word:
        """The next word; at the end, a symbol without text."""
        return self._words[self._at] if self._at < len(self._words) else _END

    @property
    def is_at_end(self) -> bool:
        """Whether only semicolons are left."""
        return all(word.text == ";" for word in self._words[self._at :])

    def comes(self, *keywords: str) -> bool:
        """Return whether these words come next, none of them quoted. Symbols count as words."""
        ahead = self._words[self._at : self._at + len(keywords)]
        return len(ahead) == len(keywords) and all(
            word.kind in (WordKind.BARE, WordKind.SYMBOL) and word.text.lower() == keyword
            for word, keyword in zip(ahead, keywords, strict=True)
        )

    def accept(self, *keywords: str) -> bool:
        """Read these words if they come next; return whether they do."""
        if not self.comes(*keywords):
            return False
        self._at += len(keywords)
        return True

    def accept_any(self, *keywords: str) -> str | None:
        """Read one of these words if it comes next; return it."""
        return next((keyword for keyword in keywords if self.accept(keyword)), None)

    def expect(self, *keywords: str) -> None:
        """Read these words. Raises CannotFollow if others come next."""
        if not self.accept(*keywords):
            raise self.fail(f"expected {' '.join(keywords).upper()}")

    def take(self) -> Word:
        """Read any word."""
        word = self.next
        if word is _END:
            raise self.fail("expected more")
        self._at += 1
        return word

    def name(self) -> str:
        """Read a name, quoted or not."""
        if self.next.kind not in (WordKind.BARE, WordKind.NAME):
            raise self.fail("expected a name")
        return self.take().text

    def table_name(self) -> TableName:
        """Read `table` or `schema.table`."""
        first = self.name()
        return TableName(first, self.name()) if self.accept(".") else TableName(None, first)

    def number(self) -> int:
        """Read a whole number."""
        if self.next.kind is not WordKind.NUMBER or not self.next.text.isdigit():
            raise self.fail("expected a number")
        return int(self.take().text)

    def string(self) -> str:
        """Read a string."""
        if self.next.kind is not WordKind.STRING:
            raise self.fail("expected a text")
        return self.take().text

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read items that are separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    @contextmanager
    def parentheses(self) -> Iterator[None]:
        """Read a pair of parentheses; the caller reads what is between."""
        self.expect("(")
        yield
        self.expect(")")

    def skip_parentheses(self) -> None:
        """Skip a balanced pair of parentheses with its content."""
        self.expect("(")
        depth = 1
        while depth:
            word = self.take()
            if word.kind is WordKind.SYMBOL:
                depth += (word.text == "(") - (word.text == ")")

    def skip_to(self, *symbols: str) -> None:
        """Skip everything up to one of these symbols (outside parentheses), or to the end."""
        while not self.is_at_end and not any(self.comes(symbol) for symbol in symbols):
            self.skip_one()

    def skip_one(self) -> None:
        """Skip one word, or a balanced pair of parentheses."""
        if self.comes("("):
            self.skip_parentheses()
        else:
            self.take()

    def fail(self, what: str) -> CannotFollow:
        """Return an error with the current place."""
        shown = " ".join(word.text for word in self._words[self._at : self._at + _SHOWN_WORDS])
        found = f"found: {shown}" if shown else "found the end of the statement"
        return CannotFollow(why=f"{what}, {found}")
