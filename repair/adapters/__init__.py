"""Where repair touches the world: reading failing events, writing plan directories."""
