"""Row images: how long their values are, and what they mean."""
