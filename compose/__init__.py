"""Topologies of real servers for tests, and faults that are injected into them."""
