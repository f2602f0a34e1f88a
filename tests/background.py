"""An action that another thread repeats while a test runs.

An error of the action fails the test: a test never passes because its background work had stopped.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event


@contextmanager
def in_background(act: Callable[[int], object], *, every_seconds: float) -> Iterator[None]:
    """Call `act` with 1, 2, 3, … until the block ends. Raises what `act` raised."""
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
