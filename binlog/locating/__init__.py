"""Where a GTID stands among files, told by the heads of a few of them."""
