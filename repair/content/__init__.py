"""What transactions contain, and what a planner must read of them and of the rows they change."""
