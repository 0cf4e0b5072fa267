"""The framework of plugins and actions: plugin interface, sessions, statements, placement of tasks."""
