"""What the runtime counts and times, under the names that dashboards of Volcano know."""
