"""Run several jobs as one service: read and check the file of jobs, and restart jobs that fail."""
