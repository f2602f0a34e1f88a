"""An error of replication, followed to its cause: values and decisions, without servers."""
