"""Caches the last result: callers request the facts of one snapshot several times in succession.

A reader uses the facts to decide whether to read again and which questions to ask of binary logs.
Then the audit, and each rule that needs them, requests them again. One result is kept per function,
so a process holds at most one snapshot longer than its caller does.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Subject = TypeVar("Subject")
Options = ParamSpec("Options")
Result = TypeVar("Result")


def keep_last_result(
    compute: Callable[Concatenate[Subject, Options], Result],
) -> Callable[Concatenate[Subject, Options], Result]:
    """Return a pure function that repeats its last answer for the same arguments.

    Its first argument, a frozen object, is compared by identity. Comparing two snapshots would take
    long, and two equal log positions may have different file names. Callers must not change the
    results.
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
