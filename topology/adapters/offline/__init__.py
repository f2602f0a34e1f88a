"""Servers that gtid-audit cannot reach: their readings, from output that was pasted into files."""
