"""Figures, each beside its peer in the same run. Nothing here is asserted."""
