"""Carries accounts to executors, inside partitions.

The one place in the project that pickles a Secret, and it does so in so many words: Spark gives the
bytes of a partition to a task's Python, and neither prints, logs nor lists them.
"""

import io
import pickle
from typing import Any

from topology.target import Secret


def packed(value: object) -> bytes:
    """Pickle a value with the secrets in it."""
    held = io.BytesIO()
    _WithSecrets(held, pickle.HIGHEST_PROTOCOL).dump(value)
    return held.getvalue()


def unpacked(carried: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return what was packed: by our own driver, and nobody else."""
    return pickle.loads(carried)  # noqa: S301 - see above


class _WithSecrets(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:  # noqa: ANN401 - as pickle has it
        return (Secret, (value.reveal(),)) if type(value) is Secret else NotImplemented
