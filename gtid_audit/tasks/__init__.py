"""What a command does: reads servers or logs, evaluates them, and returns what a view prints."""
