"""Scheduler configuration files: read with the position of every error, and printed in full."""
