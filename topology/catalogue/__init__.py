"""Verdicts, repair strategies and error texts: the tables behind findings and `explain`."""
