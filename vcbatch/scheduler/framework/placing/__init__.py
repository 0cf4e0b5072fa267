"""On which nodes the tasks of a gang go, by exact greedy choice."""
