"""Compares the rows of two servers in parts, by checksums that the servers compute."""
