"""Which nodes and gangs are this scheduler's where several work on one cluster."""
