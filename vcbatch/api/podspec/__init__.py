"""Pod specs in plain JSON: Kubernetes' defaults and validation."""
