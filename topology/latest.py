"""Keeps what was computed last: the facts of one snapshot are asked for several times in a row.

A reader looks at them to decide whether to read again and what to ask of binary logs; then the
audit, and each rule that needs them, asks again. One result is kept for each function, so that a
process holds at most one snapshot longer than its caller does.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Subject = TypeVar("Subject")
Options = ParamSpec("Options")
Result = TypeVar("Result")


def keep_latest(
    compute: Callable[Concatenate[Subject, Options], Result],
) -> Callable[Concatenate[Subject, Options], Result]:
    """Return a pure function that answers the same question again without computing.

    Its first argument, a frozen object, is compared by identity: to compare two snapshots would
    take long, and two equal log positions may have files of different names. Results are not
    changed by those who receive them.
    """
    latest: tuple[object, object, Result] | None = None

    @wraps(compute)
    def kept(subject: Subject, /, *args: Options.args, **kwargs: Options.kwargs) -> Result:
        nonlocal latest
        held = latest  # replaced as a whole: another thread may do so at any time
        options = (args, kwargs)
        if held is not None and held[0] is subject and held[1] == options:
            return held[2]
        result = compute(subject, *args, **kwargs)
        latest = (subject, options, result)
        return result

    return kept
