"""Topology-aware placement: network topology domains, and sub-gangs."""
