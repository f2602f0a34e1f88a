"""A thread beside a test acts as long as it should, and does not fail in silence."""

from threading import Event

import pytest

from tests.meanwhile import meanwhile


def test_it_acts_until_the_block_ends() -> None:
    numbers: list[int] = []
    several = Event()

    def act(number: int) -> None:
        numbers.append(number)
        if number == 3:
            several.set()

    with meanwhile(act, every_seconds=0.001):
        assert several.wait(10)
    ended = len(numbers)
    assert numbers == list(range(1, ended + 1))
    assert not Event().wait(0.02)
    assert len(numbers) == ended


def test_what_goes_wrong_there_goes_wrong_here() -> None:
    begun = Event()

    def act(_number: int) -> None:
        begun.set()
        raise LookupError

    with pytest.raises(LookupError), meanwhile(act, every_seconds=0.001):
        assert begun.wait(10)
