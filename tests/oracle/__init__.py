"""An independent, slow implementation of the scheduler's rules, and random cluster states to compare the
decisions on."""
