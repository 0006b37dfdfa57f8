"""Answer what a decision asks of the past."""
