"""Docker: an engine, images made from Debian packages, and test servers in containers."""
