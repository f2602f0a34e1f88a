"""What users read: reports and their parts, as text for the terminal and as JSON documents."""
