"""Everything on one machine, put together: the only place that knows both the runtime and the local server.

One process and one event loop: server, admission, controllers, scheduler and kubelet. kopf alone has a thread.
"""
