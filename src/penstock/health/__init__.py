"""Say how the house is: lag per source, what waits, what runs, and figures for Prometheus."""
