"""Rows that a server may not have because a server above it filters.

A filter on the way to a server keeps rows from it, and from every server below: the GTIDs arrive,
with nothing in them. Two kinds of filters, at any server above (seen on 9.7.4):

* Filters of a channel (replicate_*, and a rewrite): what they leave out is not in the rows of that
  server, nor in its log.
* binlog_do_db and binlog_ignore_db: what they leave out is in its rows, and not in its log.

Benign and malign in a pair that replicates in both directions, a ⇄ m, with a filter on the channel
of m from a: all that passes it was on a before, so a misses nothing. With another source of m, x,
what passes the filter on the channel from x reaches a without its rows.
"""

from collections.abc import Iterator, Mapping

from topology.facts.graph import Graph
from topology.facts.source_limits import log_filters_of
from topology.readings.snapshot import ServerSnapshot


def left_out_above(name: str, graph: Graph, servers: Mapping[str, ServerSnapshot]) -> Iterator[str]:
    """Yield which filters above a server may have kept rows from it; stopped channels count."""
    for above in _above(name, graph):
        server = servers[above]
        sources = {edge.channel.name: edge.source for edge in graph.into(above)}
        effect = f"and {name} receives through it: {name} may not have the rows that others have"
        for option, value in log_filters_of(server):
            yield f"{above} does not log all of its changes ({option} = {value}), {effect}"
        for channel in server.channels or ():
            if channel.filters and sources.get(channel.name) != name:
                listed = ", ".join(channel.filters)
                yield f"{above} does not apply all that it receives ({listed}), {effect}"


def _above(name: str, graph: Graph) -> tuple[str, ...]:
    """Return the servers above one, without going through it again, in order of name."""
    found: set[str] = set()
    frontier = {name}
    while frontier:
        sources = {edge.source for each in frontier for edge in graph.into(each)}
        peers = {peer for group in graph.together if frontier & {*group} for peer in group}
        frontier = (sources | peers) - found - {name}
        found |= frontier
    return tuple(sorted(found))
