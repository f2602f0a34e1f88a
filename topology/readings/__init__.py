"""What was read from servers and their logs: frozen values, versions and addresses."""
