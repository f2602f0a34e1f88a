"""Servers are lent from test to test here, and one Spark session serves all."""

from tests.lending import pair97, pairs97
from tests.one_spark import spark

__all__ = ["pair97", "pairs97", "spark"]
