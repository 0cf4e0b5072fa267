"""I/O of the controllers and the scheduler: clients, watches, caches, work queue, lease, apply, event recorder."""
