"""Launch what schedules say, once per slot, however many schedulers look."""
