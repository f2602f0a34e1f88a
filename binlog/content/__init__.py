"""What transactions did, so that two logs can be held against each other."""
