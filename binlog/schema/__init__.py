"""The definitions of tables at an event, and how DDL changes them."""
