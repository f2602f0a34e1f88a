"""Walks over the words of a statement: what comes next, is it this, give me a name.

It knows no statement. Whatever is not as asked for raises CannotFollow, with the place.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from binlog.schema.changes import TableName
from binlog.schema.words import CannotFollow, Kind, Word

T = TypeVar("T")

_END = Word(Kind.SYMBOL, "", -1)
_SHOWN_WORDS = 6


class WordReader:
    """A place in a statement. `accept` takes words if they are there, `expect` insists."""

    def __init__(self, words: tuple[Word, ...]) -> None:
        self._words = words
        self._at = 0

    @property
    def next(self) -> Word:
        """The word that comes; at the end a symbol without text."""
        return self._words[self._at] if self._at < len(self._words) else _END

    @property
    def is_at_end(self) -> bool:
        """Nothing comes but semicolons."""
        return all(word.text == ";" for word in self._words[self._at :])

    def comes(self, *keywords: str) -> bool:
        """Return whether the next words are these, none of them quoted. Symbols count as words."""
        ahead = self._words[self._at : self._at + len(keywords)]
        return len(ahead) == len(keywords) and all(
            word.kind in (Kind.BARE, Kind.SYMBOL) and word.text.lower() == keyword
            for word, keyword in zip(ahead, keywords, strict=True)
        )

    def accept(self, *keywords: str) -> bool:
        """Take these words, if they come."""
        if not self.comes(*keywords):
            return False
        self._at += len(keywords)
        return True

    def accept_any(self, *keywords: str) -> str | None:
        """Take one of these words, if it comes."""
        return next((keyword for keyword in keywords if self.accept(keyword)), None)

    def expect(self, *keywords: str) -> None:
        """Take these words."""
        if not self.accept(*keywords):
            raise self.fail(f"expected {' '.join(keywords).upper()}")

    def take(self) -> Word:
        """Take any word."""
        word = self.next
        if word is _END:
            raise self.fail("expected more")
        self._at += 1
        return word

    def name(self) -> str:
        """Take a name, quoted or not."""
        if self.next.kind not in (Kind.BARE, Kind.NAME):
            raise self.fail("expected a name")
        return self.take().text

    def table_name(self) -> TableName:
        """Take `table` or `schema.table`."""
        first = self.name()
        return TableName(first, self.name()) if self.accept(".") else TableName(None, first)

    def number(self) -> int:
        """Take a whole number."""
        if self.next.kind is not Kind.NUMBER or not self.next.text.isdigit():
            raise self.fail("expected a number")
        return int(self.take().text)

    def string(self) -> str:
        """Take a text."""
        if self.next.kind is not Kind.STRING:
            raise self.fail("expected a text")
        return self.take().text

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Take items with commas between them."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    @contextmanager
    def parentheses(self) -> Iterator[None]:
        """Take what is between parentheses."""
        self.expect("(")
        yield
        self.expect(")")

    def skip_parentheses(self) -> None:
        """Pass a balanced pair of parentheses and all that is in it."""
        self.expect("(")
        depth = 1
        while depth:
            word = self.take()
            if word.kind is Kind.SYMBOL:
                depth += (word.text == "(") - (word.text == ")")

    def skip_to(self, *symbols: str) -> None:
        """Pass everything up to one of these symbols (outside parentheses), or to the end."""
        while not self.is_at_end and not any(self.comes(symbol) for symbol in symbols):
            self.skip_one()

    def skip_one(self) -> None:
        """Pass one word, or a balanced pair of parentheses."""
        if self.comes("("):
            self.skip_parentheses()
        else:
            self.take()

    def fail(self, what: str) -> CannotFollow:
        """Build (not raise) the complaint about the place."""
        shown = " ".join(word.text for word in self._words[self._at : self._at + _SHOWN_WORDS])
        found = f"found: {shown}" if shown else "found the end"
        return CannotFollow(why=f"{what}, {found}")
