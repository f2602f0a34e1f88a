"""Real topologies to run against, and the faults that are injected into them."""
