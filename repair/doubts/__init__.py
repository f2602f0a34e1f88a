"""Reasons against an action: each module knows one kind of harm and how readings show it.

A strategy asks these modules before it proposes an action. What they return is a refusal, a warning
or a guard, with the text that the operator reads.
"""
