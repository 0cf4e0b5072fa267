"""The structure of objects: the types of the built-in API and the schemas of custom resources."""
