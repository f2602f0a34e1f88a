"""The parts of the fleet audit that use files, Spark and Java."""
