"""Definitions of schema objects on several servers: which differ, and what that leads to."""
