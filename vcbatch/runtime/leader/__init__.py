"""One of several replicas works: leader election, and the gate that writes pass."""
