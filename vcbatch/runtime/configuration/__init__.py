"""Configuration files that are watched, and the reporting of invalid ones."""
