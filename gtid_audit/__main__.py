"""Runs the command line as `python -m gtid_audit`."""

from gtid_audit.cli import main

if __name__ == "__main__":
    main()
