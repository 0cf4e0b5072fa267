"""What rules a node out, and what scores read of it: labels, taints, other pods, volumes, cpus."""
