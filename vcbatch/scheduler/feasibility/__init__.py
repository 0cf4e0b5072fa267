"""Whether a gang could start at all on the cluster's nodes without other pods."""
