"""The small program that starts containers and outlives the kubelet.

`main` is one long-lived, single-threaded process per kubelet that forks on request: forking a process of a few
megabytes takes about a millisecond, where starting an interpreter per container would take fifteen. Each container then
has its own `init`, which writes the log and the exit status, also without the kubelet.

It runs isolated (`python -I -S`) and imports only the standard library, so that it starts quickly and stays small.
"""
