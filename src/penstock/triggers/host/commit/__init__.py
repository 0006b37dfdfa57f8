"""Write what a pass has changed."""
