"""The scheduler as a running program: deltas in, decisions carried out."""
