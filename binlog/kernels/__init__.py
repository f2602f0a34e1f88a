"""The loops of the binlog that are compiled: see gtid/jit.py for how, and for what one may call."""
