"""What is typed: DSNs, files, sets and options as values, before anything is read."""
