"""Servers as sets, what an action does to them, and what a strategy is given and may return."""
