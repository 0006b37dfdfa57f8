"""Listen for new jobs."""
