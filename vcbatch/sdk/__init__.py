"""The typed Python client."""
