"""Count what triggers do, for health and metrics."""
