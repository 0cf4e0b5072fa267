"""What the scheduler would do: simulation, snapshots, replay, and the configuration they use."""
