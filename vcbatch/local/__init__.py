"""Local mode on one machine: the embedded API server and the process kubelet."""
