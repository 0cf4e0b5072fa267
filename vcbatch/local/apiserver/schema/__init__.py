"""What objects look like: the types of the built-in API and the schemas of custom resources."""
