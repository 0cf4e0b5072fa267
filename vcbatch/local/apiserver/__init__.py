"""An API server that kubectl, the Python client, kopf and our own components accept. Not a Kubernetes distribution."""
