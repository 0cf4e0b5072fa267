"""Local mode: the only package that depends on both the runtime and the local server.

One process and one event loop run the server, admission, controllers, scheduler and kubelet. Only kopf has a thread.
"""
