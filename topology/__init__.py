"""Servers, who replicates from whom, the facts about them, and what the facts mean."""
