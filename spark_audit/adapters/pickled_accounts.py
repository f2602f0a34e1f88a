"""Carries accounts to executors, inside partitions.

This is the only module of the project that pickles a Secret, and it does so explicitly. Spark
passes the bytes of a partition to a task's Python process, and neither prints, logs nor lists them.
"""

import io
import pickle
from typing import Any

from topology.readings.target import Secret


def packed(value: object) -> bytes:
    """Pickle a value together with its secrets."""
    held = io.BytesIO()
    _WithSecrets(held, pickle.HIGHEST_PROTOCOL).dump(value)
    return held.getvalue()


def unpacked(carried: bytes) -> Any:  # noqa: ANN401 - any packed value
    """Return the packed value. Only our own driver packs values."""
    return pickle.loads(carried)  # noqa: S301 - see above


class _WithSecrets(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:  # noqa: ANN401 - signature of pickle
        return (Secret, (value.reveal(),)) if type(value) is Secret else NotImplemented
