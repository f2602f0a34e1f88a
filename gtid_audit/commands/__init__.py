"""The commands, one file for each family. A file reads what was typed and calls the core."""
