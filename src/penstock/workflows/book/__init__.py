"""Keep definitions, schedules and services, and show runs with their steps and history."""
