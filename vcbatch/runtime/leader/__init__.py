"""One of several replicas works: leader election, and the check before each write."""
