"""Servers are lent from test to test here: see tests/server_pool.py."""

from tests.server_pool import pair56, pair97, pairs56, pairs97, star97, stars97

__all__ = ["pair56", "pair97", "pairs56", "pairs97", "star97", "stars97"]
