"""Sleep until there may be something to judge."""
