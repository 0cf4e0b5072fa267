"""Nothing runs in the background unless somebody notices its end: tasks and threads are started by
`vcbatch.hosting.supervise`, or are on the list below with the reason why they need not be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_STARTS = frozenset({"create_task", "ensure_future", "Thread", "Timer", "start_new_thread"})

AWAITED = "its result is awaited, and it is cancelled where it isn't needed, in the function that starts it"
PER_REQUEST = "it serves one connection, which ends with it; whoever serves the connection awaits or cancels it"
FOREGROUND = "a command that runs in the foreground: it awaits the task, and shows its error"

ALLOWED = {
    "vcbatch/hosting/supervise.py::Background._start": "the supervisor itself",
    "vcbatch/hosting/supervise.py::first_of": AWAITED,
    "vcbatch/hosting/supervise.py::pause": AWAITED,
    "vcbatch/runtime/leader/lease.py::LeaderElector.run": AWAITED,
    "vcbatch/runtime/leader/lease.py::LeaderElector._within": AWAITED,
    "vcbatch/runtime/serving.py::HealthServer.start": "where the thread doesn't run, no probe is answered",
    "vcbatch/runtime/caches/kopf_operator.py::KopfOperator.run": "its end is awaited, and its error raised there",
    "vcbatch/cli/components/component.py::_run": AWAITED,
    "vcbatch/observe/tracing.py::OtelTracer.close": "at the end of the program, which waits for it for some seconds",
    "vcbatch/cli/components/scheduler.py::command.work": "sends events until the first policy is read, a part after it",
    "vcbatch/cli/local/kubelets.py::Kubelets.start": "`ended`, a part that ends the program, raises what they raise",
    "vcbatch/cli/local/kubelets.py::Kubelets._start_virtual": "`ended`, a part that ends the program, raises it",
    "vcbatch/cli/local/program.py::LocalProgram._run": AWAITED,
    "vcbatch/cli/local/program.py::_either": AWAITED,
    "vcbatch/local/apiserver/server.py::EmbeddedServer._serve": "`ended`, a part that ends the program, raises it",
    "vcbatch/local/apiserver/watch.py::Watch.__aiter__": AWAITED,
    "vcbatch/runtime/scheduling/plugin_watch.py::PluginWatch.over": "a single look, cancelled at the end of the cycle",
    "webhooks/server.py::serve": AWAITED,
    "vcbatch/local/kubelet/session.py::LocalSession.started": PER_REQUEST,
    "vcbatch/local/kubelet/session.py::LocalSession.output": PER_REQUEST,
    "vcbatch/local/apiserver/app.py::_stream": PER_REQUEST,
    "vcbatch/local/apiserver/websockets.py::stream": PER_REQUEST,
    "vcbatch/local/apiserver/subresources/": PER_REQUEST,
    "vcbatch/cli/exec/": FOREGROUND,
    "vcbatch/cli/wait/": FOREGROUND,
    "vcbatch/cli/logs/": FOREGROUND,
    "vcbatch/cli/run/": FOREGROUND,
    "vcbatch/cli/base/reader.py::": FOREGROUND,
    "vcbatch/cli/resources/queue/delete.py::": FOREGROUND,
    "vcbatch/sdk/portal.py::_LoopThread._running": "every call waits for the answer of the loop in that thread",
    "vcbatch/sdk/portal.py::_Pump.take": "`take` raises its error",
    "vcbatch/sdk/logs.py::": "the reader of the log gets the error of any of them",
    "vcbatch/sdk/log_reader.py::": AWAITED,
}
"""Who starts tasks or threads by itself, and why that is safe: a function, a file, or a folder."""


class _Starts(ast.NodeVisitor):
    """Finds what starts a task or a thread, but for tasks of a `TaskGroup`, whose errors can't be missed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: list[str] = []
        self._groups: set[str] = set()
        self.found: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node.name, node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inside(node.name, node)

    def _inside(self, name: str, node: ast.AST) -> None:
        self._names.append(name)
        self.generic_visit(node)
        self._names.pop()

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        for item in node.items:
            if ast.unparse(item.context_expr) == "asyncio.TaskGroup()" and isinstance(item.optional_vars, ast.Name):
                self._groups.add(item.optional_vars.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        of_group = (
            isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in self._groups
        )
        if name in _STARTS and not of_group:
            self.found.append(f"{self._path}::{'.'.join(self._names)}")
        self.generic_visit(node)


def starts(source: str, path: str) -> list[str]:
    visitor = _Starts(path)
    visitor.visit(ast.parse(source))
    return visitor.found


def every_start() -> Iterator[str]:
    for folder in ("vcbatch", "webhooks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from starts(path.read_text(), path.relative_to(ROOT).as_posix())


def test_every_background_task_is_supervised_or_has_a_reason_not_to_be() -> None:
    unsupervised = [start for start in every_start() if not any(start.startswith(allowed) for allowed in ALLOWED)]
    assert not unsupervised, "start them with vcbatch.hosting.supervise.Background, or as a Part"


def test_no_reason_outlives_its_task() -> None:
    found = list(every_start())
    assert not [allowed for allowed in ALLOWED if not any(start.startswith(allowed) for start in found)]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("asyncio.create_task(work())", 1),
        ("asyncio.ensure_future(work())", 1),
        ("asyncio.get_running_loop().create_task(work())", 1),
        ("threading.Thread(target=work).start()", 1),
        ("Thread(target=work)", 1),
        ("async def f():\n  async with asyncio.TaskGroup() as group:\n    group.create_task(work())", 0),
        ("async def f():\n  async with other() as group:\n    group.create_task(work())", 1),
    ],
)
def test_what_counts_as_the_start_of_a_task(source: str, count: int) -> None:
    assert len(starts(source, "x.py")) == count
