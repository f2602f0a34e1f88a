"""Servers are lent from test to test here, one Spark session serves all, and the page is wide."""

import pytest

from tests.one_spark import spark
from tests.server_pool import pair97, pairs97

__all__ = ["pair97", "pairs97", "spark"]


@pytest.fixture(autouse=True)
def _page_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the path of a test's folder is, and so where a line breaks, is no matter of ours."""
    monkeypatch.setenv("COLUMNS", "160")
