"""Both forms of boundaries in every law: the threshold lowered until small examples cross it."""

from collections.abc import Iterator

import pytest

from gtid import boundaries


@pytest.fixture(scope="module", params=["as it is", "arrays"])
def representation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module in each form. Sets made at its import would keep the usual one: make none."""
    chosen: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        if chosen != "as it is":
            patch.setattr(boundaries, "LONG_BOUNDARIES_MIN", 4)
        yield chosen
