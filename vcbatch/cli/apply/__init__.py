"""`vcbatch apply` and `vcbatch delete`: apply manifests after showing a diff, and delete their objects."""
