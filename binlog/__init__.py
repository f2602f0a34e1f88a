"""Reads MySQL's binary logs: bytes to events, events to transactions.

The core is pure: it is given bytes and gives values. Only `binlog.adapters` opens files and talks
to servers: `files`, `stream`, and `memory`, which stands in for both.
"""
