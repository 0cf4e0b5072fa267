"""Resource accounting of queues in their hierarchy: allocated, requested, deserved, guaranteed."""
