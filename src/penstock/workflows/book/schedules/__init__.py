"""Keep schedules."""
