"""Lists of servers, and how to connect to them: DSNs, option files, environment, fleet file."""
