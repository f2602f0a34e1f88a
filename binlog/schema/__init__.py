"""What tables looked like at an event: definitions, and DDL applied to them."""
