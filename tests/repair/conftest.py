"""Servers are lent from test to test here: see tests/lending.py."""

from tests.lending import pair56, pair97, pairs56, pairs97, star97, stars97

__all__ = ["pair56", "pair97", "pairs56", "pairs97", "star97", "stars97"]
