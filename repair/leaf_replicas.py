"""Which steps the rules may evaluate together: each brings one replica nearer to its own source.

How it works
------------
The rules evaluate the whole cluster after a step (audit_after_plan.py), so the time of a plan grows
with the square of the servers. Where a plan has many findings, they are mostly alike: many replicas
of one source, each with the same fault.

    a ──► r1 (stopped)      A start of r1 delivers what `a` has, and nothing receives from r1. So
    a ──► r2 (stopped)      the rules report the same about `a` and r2 as before, and what they
                            report about r1 does not depend on r2.

1. A *leaf* is a replica with one channel, of a source in the model. Nothing receives from it, it is
   in no group, and no other server has its server_id.
2. Steps go together if each changes one leaf, each another one, and delivers only what its source
   has. The planner lets the rules evaluate them once, after the last of them.
3. If a server is worse afterwards, that does not show which step did it. Then the planner takes
   half as many, down to one.

A choice of the operator is evaluated by itself: some of what makes a server worse is accepted then.
The definition is the evaluation after each step; tests compare the plans.
"""

from repair.model.actions import AutoPositionOn, StartChannel
from repair.model.replication_model import Model
from repair.simulated_proposal import Simulated
from topology.catalogue.findings import Finding


def leaf_of(finding: Finding, model: Model) -> str | None:
    """Return the leaf that a finding is about; None if it is about another server."""
    name = finding.replica
    if name is None or name not in model.servers or model.links.receivers.get(name):
        return None
    server = model[name]
    if len(server.channels) != 1 or server.channels[0].source not in model.servers:
        return None
    if server.group_name is not None or server.server_uuid in model.links.groups:
        return None
    return name if model.links.uuids[server.server_id] == (server.server_uuid,) else None


def changes_only(leaf: str, simulated: Simulated, before: Model) -> bool:
    """Return whether a proposal changes nothing but a leaf, and brings only what its source has."""
    after = simulated.model
    if after is before:
        return True
    if not all(isinstance(each, StartChannel | AutoPositionOn) for each in simulated.effects):
        return False
    source = before[leaf].channels[0].source
    assert source is not None, "the source of a leaf is in the model"
    new = after[leaf].executed - before[leaf].executed
    return after.changed_since(before) == (leaf,) and new <= before[source].executed
