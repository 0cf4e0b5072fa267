"""What queues hold, are given and ask for, in their tree."""
