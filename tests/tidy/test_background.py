"""Background work runs until its block ends, and its errors fail the test."""

from threading import Event

import pytest

from tests.background import in_background


def test_it_acts_until_the_block_ends() -> None:
    numbers: list[int] = []
    several = Event()

    def act(number: int) -> None:
        numbers.append(number)
        if number == 3:
            several.set()

    with in_background(act, every_seconds=0.001):
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

    with pytest.raises(LookupError), in_background(act, every_seconds=0.001):
        assert begun.wait(10)
