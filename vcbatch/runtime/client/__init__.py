"""Requests to the API server: connections, credentials, bytes to objects and back."""
