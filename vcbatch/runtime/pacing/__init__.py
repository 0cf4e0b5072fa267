"""When something is done again: queues of keys, waiting between tries, so much at a time."""
