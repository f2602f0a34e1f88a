"""The fleet audit: evaluates every stored cluster, here or on Spark, with the same results."""
