"""Places that are kept: for gangs that others were evicted for, and for the head of a queue."""
