"""Converts an action to a step: the script, its guards, and the checks of other servers."""
