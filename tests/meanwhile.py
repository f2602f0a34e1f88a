"""Something done again and again by another thread while a test is at work.

What goes wrong there goes wrong in the test: a block that only believed to have company fails.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event


@contextmanager
def meanwhile(act: Callable[[int], object], *, every_seconds: float) -> Iterator[None]:
    """Act, with the numbers from 1 on, until the block ends. Raises what `act` raised."""
    is_over = Event()

    def go_on() -> None:
        number = 0
        while not is_over.wait(every_seconds):
            number += 1
            act(number)

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(go_on)
        try:
            yield
        finally:
            is_over.set()
        acting.result()
