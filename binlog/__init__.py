"""Reads MySQL's binary logs: bytes to events, events to transactions.

The core is pure: it receives bytes and returns values. Only `binlog.adapters` opens files and
connects to servers.
"""
