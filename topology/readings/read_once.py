"""Servers of which there is only one reading: pasted output, taken at a moment of its own.

How it works
------------
Every comparison of two servers relies on the order of their readings (adapters/collect.py):

    extra on replica r    = first(r) - last(s)    s had the whole time from first(r) to catch up
    missing on replica r  = first(s) - last(r)    r had the whole time from first(s) to catch up

A server that was read once has no last reading. What it had at its only moment takes that place. So
a difference may be as old as the moment of the one file and as young as that of the other one:

    12:00  db1 is read    A:1-100
    12:02  db2 is read    A:1-180    A:101-180 may be what db1 has committed since 12:00

1. The `last` reading of such a server is a copy of the first one, and keeps phase 1. Nothing else
   has phase 1 there. `ClusterSnapshot` does not require that it began after the first readings.
2. The copy has no `log_end`. A position of a replica may be after the end of the log only because
   the source has written since. The first reading keeps it: what was executed then lies before it.
3. The facts do not compare such a server with itself: topology/facts/applier_facts.py. What may
   have arrived since is no difference: topology/facts/since_reading.py. A finding that the time
   between two readings could explain is not proved: topology/rules/build.py.
"""

from dataclasses import replace

from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot


def as_last_reading(reading: ServerSnapshot) -> ServerSnapshot:
    """Return the only reading of a server, to stand where its last one would be."""
    return replace(reading, phase=1, log_end=None)


def is_read_once(last: ServerSnapshot) -> bool:
    """Return whether a `last` reading is the only one of its server."""
    return last.phase == 1


def read_once_in(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return the servers without a second reading, in order of name."""
    return tuple(server.name for server in snapshot.last if is_read_once(server))
