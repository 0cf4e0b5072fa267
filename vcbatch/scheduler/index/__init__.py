"""Indexes that are updated pod by pod: inter-pod terms, volumes, cpus, devices, victims, demand, shards."""
