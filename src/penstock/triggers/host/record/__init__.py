"""Read passes as they were recorded, to run them again."""
