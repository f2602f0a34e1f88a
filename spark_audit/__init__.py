"""The fleet audit: every stored cluster judged, in this process or on Spark, with one meaning."""
