"""Files that users name: manifests, documents and their positions, policies, plugins."""
