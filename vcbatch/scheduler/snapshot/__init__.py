"""The state of nodes, pods, gangs and queues that a cycle decides on."""
