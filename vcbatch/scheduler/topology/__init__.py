"""Gangs that are to be near together: domains of the network, and gangs inside gangs."""
