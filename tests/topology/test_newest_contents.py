"""Without the packages, the newest contents are unread for good, with the command that helps."""

from typing import Any, cast

import pytest

from binlog.content.reuse import Unread
from topology.adapters import newest_contents
from topology.adapters.install_command import install_command


class Server:
    def __init__(self, name: str) -> None:
        self.name = name


class Search:
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.noted: list[Unread] = []

    def note(self, unread: Unread) -> None:
        self.noted.append(unread)


def test_the_command_is_in_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_contents, "find_spec", lambda _name: None)
    search, counts = Search(), list[int]()
    a, b = (cast(Any, Server(name)) for name in ("a", "b"))
    newest_contents.compare_newest_contents(a, b, counts, cast(Any, search))
    text = f"compared only around restarts; to compare more: {install_command('columns')}"
    assert search.noted == [Unread("a, b", text, is_lasting=True)]
    assert counts == []
