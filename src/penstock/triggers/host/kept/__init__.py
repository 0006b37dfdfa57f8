"""Read what earlier passes have kept for the next one."""
