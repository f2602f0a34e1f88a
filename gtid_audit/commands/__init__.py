"""The commands, one module per family. Each reads the arguments and calls the core."""
