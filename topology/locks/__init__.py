"""Who waits for which lock on one server, and who holds it: pure."""
