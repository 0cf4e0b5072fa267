"""Decisions of the scheduler: whole gangs on arrays, with reasons. No I/O, no clock, no randomness."""
