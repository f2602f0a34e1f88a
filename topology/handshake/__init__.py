"""Could one server replicate from another now: what the source would answer, and what would follow.

`source_answer` evaluates one replica and one source, `matrix` all pairs of a cluster, `promotion` a
failover to one server. `refusal_texts` has the error texts of each version.
"""
