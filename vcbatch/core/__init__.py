"""Decisions of the controllers: one pure state machine per resource. No I/O, no clock, no randomness."""
