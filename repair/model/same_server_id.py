"""Servers with one server_id: each drops what the other committed (C2).

A receiver treats an event with its own server_id as one of its own that came back in a ring. So a
started channel would deliver none of them. See topology/facts/progress.py for the source of this
rule.
"""

from repair.model.replication_model import ModelServer
from repair.model.strategy_case import Case


def same_server_id(case: Case, replica: ModelServer) -> str | None:
    """Return why a server would drop what it is sent: another one has its server_id (C2)."""
    if case.is_chosen or replica.server_id is None:
        return None
    for other in case.model.links.names[replica.server_id]:
        if other != replica.name:
            return (
                f"{other} and {replica.name} have the same server_id: {replica.name} drops what"
                f" {other} committed. Set another server_id on one of them first"
            )
    return None
