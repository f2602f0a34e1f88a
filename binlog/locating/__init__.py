"""Finds the file of a GTID by the previous GTIDs in the headers of a few files."""
