"""An API server that works with kubectl, the Python client, kopf and our own components. Not a Kubernetes
distribution."""
