"""Row images: the lengths of their values, and how to decode them."""
