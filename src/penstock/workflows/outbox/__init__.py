"""Take events that committed with a change into the log, once."""
