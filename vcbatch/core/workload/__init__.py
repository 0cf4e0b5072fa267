"""Kubernetes' own workloads, for a machine where nobody else acts on them: what follows from one look at each kind."""
