"""Reserved nodes and resources: for gangs that pods were evicted for, and for the first gang of a queue."""
