"""Run steps: functions here, processes apart, Spark jobs, and requests to others, all guarded."""
