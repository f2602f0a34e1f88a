"""Makes fleets and sets to measure with: the same for the same seed, however they are cut."""
