"""Files that users name: manifests, documents with positions, policies, plugins."""
