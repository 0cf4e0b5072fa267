"""The fidelity suite: the same requests to a real kube-apiserver and to the embedded server, and the same answers.

How it works
------------
* `groups/*.yaml` are the requests, as data: a file is one idea, played in order in a namespace of its own
  (`exchanges` reads them and documents the format).
* `servers` gives a `Server` (address and credentials): `embedded(folder)` starts the embedded server as a process,
  `real(plane)` takes a `tests.cluster.controlplane.ControlPlane`. Both have the project's CRDs installed.
* `play.Player(server, group, namespace)` sends the requests (`wire`) and yields normalised answers (`normalise`).
* `golden/GROUP.json` keeps the real server's normalised answers, recorded by `make fidelity-record`, one a line. What
  two recordings didn't agree on is kept as `~`, which equals everything (`golden`).
* `test_embedded` compares the embedded server's answers with the golden ones; `tests/cluster/test_fidelity.py` the
  real server's, so that golden files can't rot.
* Where the embedded server differs on purpose, `differences.yaml` says why and in which answers (`listed`), and
  docs/local-mode.md lists the reasons. An answer that differs elsewhere fails, and so does a listed one that is alike.

For other drivers (kubectl, client libraries)
---------------------------------------------
Make a `normalise.Normaliser()` for each group; `value(anything)` normalises JSON-like values and `text(str)` texts.
Keep what was observed with `golden.write(path, [(ask, answer), …])`, read it with `golden.read(path)`, join two
recordings with `golden.joined(first, second)`, and compare with `golden.differences(want, got)`, whose result goes
through `golden.unexplained(found, differs)`. `servers.Server` has `url` and `kubeconfig`.
"""
