"""The choice of nodes for the tasks of a gang, by exact greedy placement."""
