"""Adapters of repair to servers and files: reading failing events, writing plan directories."""
