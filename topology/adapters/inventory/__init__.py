"""Which servers there are and how to get in: DSNs, option files, environment, fleet file."""
