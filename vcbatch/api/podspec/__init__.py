"""Pod specs in plain JSON: the defaults that Kubernetes gives them, and what it refuses in them."""
