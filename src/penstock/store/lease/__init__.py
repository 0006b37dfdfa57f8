"""Let one ingress at a time settle segments."""
