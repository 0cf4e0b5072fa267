"""Dynamic resource allocation (DRA), devices by ResourceClaim: the devices, their allocations, and those a pod would
get."""
