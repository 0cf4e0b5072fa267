"""Kubernetes' own workloads, for local mode, where no other controller manages them: the decisions for each kind."""
