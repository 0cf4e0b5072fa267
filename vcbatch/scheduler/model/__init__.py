"""What a cluster consists of, and what is decided about it: tasks, gangs, queues, nodes, and their arrays."""
