"""Where the fleet audit meets files, Spark and Java."""
