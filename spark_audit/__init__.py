"""The fleet audit: evaluates every stored cluster, locally or on Spark, with the same results."""
