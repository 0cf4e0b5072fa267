"""Devices by claim (dynamic resource allocation): which there are, who has which, and which a pod would get."""
