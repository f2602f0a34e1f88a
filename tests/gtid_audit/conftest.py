"""Servers are lent from test to test here, one Spark session serves all, and the page is wide."""

from collections.abc import Iterator

import pytest

from gtid_audit.global_options import GLOBAL_OPTIONS
from tests.one_spark import spark
from tests.server_pool import pair97, pairs97

__all__ = ["pair97", "pairs97", "spark"]


@pytest.fixture(autouse=True)
def _page_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the path of a test's folder is, and so where a line breaks, is no matter of ours."""
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def _options_end_with_a_test() -> Iterator[None]:
    """A command of this process leaves its --quiet behind, until the next one begins."""
    yield
    GLOBAL_OPTIONS.reset()
