"""Show runs, their steps, their executions and their history."""
