"""Requests to the API server: connections, credentials, encoding and decoding."""
