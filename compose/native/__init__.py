"""The topologies as plain processes of this machine: no container, no root, seconds to start."""
