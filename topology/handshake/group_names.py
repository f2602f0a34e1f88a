"""Servers of one cluster with different names of a replication group.

Two causes look the same in the settings:

* benign: two groups, of which one follows the other by a channel between their primaries;
* malign: one group, and a wrong `group_replication_group_name` on a server. It never joins the
  others. Bootstrapped, it is a second group, and only a channel would link the two.

A channel between servers of both groups shows the first. Without one gtid-audit cannot decide it.
The answers between such servers are those of channels; they say which name is where.
"""

from topology.facts.cluster_facts import ClusterFacts
from topology.facts.memberships import Membership


def doubt_of_names(facts: ClusterFacts, *, replica: str, source: str) -> str:
    """Return which names differ, if two servers have different groups without a channel between.

    They are not of one group: that answers itself. The text is the same for each two servers of
    these groups, so that it is shown once.
    """
    found = [_group_with(name, facts) for name in sorted((replica, source))]
    groups = sorted((each for each in found if each is not None), key=lambda each: each.name)
    if len(groups) < len(found):
        return ""
    one, other = groups
    ends = ({edge.replica, edge.source} for edge in facts.graph.edges)
    if any(each & {*one.configured} and each & {*other.configured} for each in ends):
        return ""
    return (
        f"the names of the groups differ: group_replication_group_name is {one.name} on"
        f" {', '.join(one.configured)}, and {other.name} on {', '.join(other.configured)}. Only a"
        " channel would link them. If they are to be one group, correct the wrong name while Group"
        " Replication is stopped there, and run this again"
    )


def _group_with(name: str, facts: ClusterFacts) -> Membership | None:
    return next((each for each in facts.graph.memberships if name in each.configured), None)
