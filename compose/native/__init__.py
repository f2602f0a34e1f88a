"""Topologies as plain processes on this machine: no container, no root, seconds to start."""
