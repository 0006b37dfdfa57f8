"""Read deliveries, what became of them in every pass, and what still waits."""
