"""Cards of nodes that pods share: what they are, who holds how much of which, and where another pod fits."""
