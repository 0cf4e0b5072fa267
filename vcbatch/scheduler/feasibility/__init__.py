"""Whether a gang could start at all on the cluster's nodes, were nobody else there."""
