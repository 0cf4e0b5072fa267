"""Scheduling simulations: what-if, snapshots, replay, and the scheduler configuration that they use."""
