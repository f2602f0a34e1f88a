"""Hypothesis profiles: how many examples each property test tries.

A law names how many examples it should try. `daily`, the default (make test), tries a third,
`quick` (make quick) a tenth, `nightly` ten times as many.

Loaded as a plugin, this file brings the profiles `quick` and `nightly`:
pytest -p tests.hypothesis_profiles --hypothesis-profile=nightly
"""

from collections.abc import Sequence

from hypothesis import HealthCheck, settings

_NAMED = 100  # what a law tries that names no number

PROFILE = "daily"  # where no other one is selected

# No time is asserted: an example takes long where other work has the processors.
for _name, _examples in (
    (PROFILE, _NAMED // 3),
    ("quick", _NAMED // 10),
    ("nightly", 10 * _NAMED),
):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def load_profile() -> None:
    """Load the profile of every day; --hypothesis-profile, which is read later, comes before it."""
    settings.load_profile(PROFILE)


def more_at_night(examples: int) -> int:
    """Return how many examples to try now."""
    return max(1, examples * settings().max_examples // _NAMED)


def laws(examples: int = _NAMED, *, tolerate: Sequence[HealthCheck] = ()) -> settings:
    """Return how to try a law: on so many examples, the same each time; at night on more."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=more_at_night(examples),
        # Examples are slow to make where other work has the processors: no time is asserted.
        suppress_health_check=[HealthCheck.too_slow, *tolerate],
    )
