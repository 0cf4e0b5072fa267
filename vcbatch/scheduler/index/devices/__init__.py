"""Device cards of nodes that pods share: their properties, their usage, and where another pod fits."""
