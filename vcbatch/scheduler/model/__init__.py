"""The data model of the scheduler: tasks, gangs, queues, nodes, their arrays, and decisions about them."""
