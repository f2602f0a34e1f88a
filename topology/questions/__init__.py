"""What only binary logs can answer, which servers are asked, and which contents are compared."""
