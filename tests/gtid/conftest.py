"""Each form of boundaries in every law: thresholds lowered until small examples cross them."""

from collections.abc import Iterator

import pytest

from gtid import accelerated, boundaries, boundary_sequence

FORMS = ("as it is", "arrays", "kernels")


@pytest.fixture(scope="module", params=FORMS)
def representation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module in each form. Sets made at its import would keep the usual one: make none."""
    chosen: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        use_form(patch, chosen)
        yield chosen


def use_form(patch: pytest.MonkeyPatch, form: str) -> None:
    """Make every set from now on in one form."""
    account = accelerated._Account()
    account.is_open = form == "kernels"
    patch.setattr(accelerated, "_account", account)
    if form != "as it is":
        # In the one form tuples meet arrays; in the other nothing but the empty set is short.
        patch.setattr(boundary_sequence, "LONG_BOUNDARIES_MIN", 4 if form == "arrays" else 1)
        patch.setattr(boundaries, "_PROBE", 2)
    if form == "kernels":
        patch.setattr(accelerated, "CALL_MIN", 0)
        account.price = 0
