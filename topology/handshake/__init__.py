"""Could one server replicate from another now: what the source would answer, and what would follow.

topology/facts/source_answer.py evaluates one replica and one source, `matrix` all pairs of a
cluster, `promotion` a failover to one server.
"""
