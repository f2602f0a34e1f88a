"""The compiled loops over binlog bytes; gtid/jit.py compiles and caches them."""
