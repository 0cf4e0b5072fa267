"""The process kubelet: runs a node's pods as processes of this machine."""
