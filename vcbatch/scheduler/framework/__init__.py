"""What plugins and actions are asked with: the plugin interface, sessions, statements, placement of tasks."""
