"""Run passes: read what happened, judge it, and commit every consequence at once."""
