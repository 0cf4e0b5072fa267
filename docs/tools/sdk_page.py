"""The page of the Python SDK: signatures and docstrings of the names of `import vcbatch`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from docs.tools.page import code, page, paragraphs, table
from docs.tools.source import Named, module, named

_SECTIONS = {
    "Clients": ("Client", "AsyncClient"),
    "Jobs that were submitted": ("JobHandle", "AsyncJobHandle", "JobEvent", "LogLine", "Waiting"),
    "Functions": (
        "task",
        "TaskFunction",
        "TaskOptions",
        "FunctionHandle",
        "MapHandle",
        "AsyncFunctionHandle",
        "AsyncMapHandle",
        "SharedFolder",
    ),
    "Definitions of jobs": (
        "Job",
        "Task",
        "Resources",
        "Policy",
        "Volume",
        "DependsOn",
        "Partitions",
        "NetworkTopology",
        "JobStatus",
        "PodLoss",
    ),
    "Plugins of jobs": ("pytorch", "tensorflow", "mpi", "ray", "env", "svc", "ssh"),
    "Queues": ("Queue", "QueueStatus"),
    "Enumerations": ("Action", "Event", "JobPhase", "QueueState", "LossCause", "WaitReason"),
    "Errors": (
        "VcbatchError",
        "NotConfigured",
        "ServerError",
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Forbidden",
        "AdmissionDenied",
        "Unavailable",
        "WaitTimeout",
        "JobEnded",
        "JobFailed",
        "TaskFailed",
        "ResultUnavailable",
    ),
}


def sdk_pages() -> dict[str, str]:
    """File name -> text.

    Raises:
        ValueError: the package has a name that is in no section.
    """
    places = _places()
    missing = set(places) - {name for names in _SECTIONS.values() for name in names}
    if missing:
        raise ValueError(f"add to a section of docs/tools/sdk_page.py: {', '.join(sorted(missing))}")
    parts = ["The names of `import vcbatch`. [Run jobs from Python](../sdk.md) shows how to use them.\n"]
    for section, names in _SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in names:
            body = module(places[name]).body
            parts += [f"{part}\n" for part in _described(next(one for one in named(body) if one.name == name))]
    return {"sdk.md": page("Python SDK", *parts)}


def _places() -> dict[str, str]:
    """Name -> module, of every name of the package."""
    (places,) = (one.node for one in named(module("vcbatch").body) if one.name == "_PLACES")
    assert isinstance(places, ast.Assign)
    return {name: place for place, names in ast.literal_eval(places.value).items() for name in names}


def _described(one: Named) -> Iterator[str]:
    yield f"### {one.name}"
    match one.node:
        case ast.ClassDef():
            yield from _class(one.name, one.node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield _signature(one.node, one.name)
            yield paragraphs(one.docstring)
        case _:
            yield paragraphs(one.docstring)


def _class(name: str, node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases]
    members = list(named(node.body))
    start = next((one.node for one in members if one.name == "__init__"), None)
    if isinstance(start, ast.FunctionDef):
        yield _signature(start, name)
    yield paragraphs(ast.get_docstring(node))
    if any(base in ("StrEnum", "Enum", "IntEnum") for base in bases):
        rows = [
            [code(f"{name}.{one.name}"), code(ast.literal_eval(one.node.value)), one.docstring]
            for one in members
            if isinstance(one.node, ast.Assign) and isinstance(one.node.value, ast.Constant)
        ]
        yield table(("Name", "Value", "Meaning"), rows)
        return
    if shown := [base for base in bases if not base.startswith(("Generic", "Wire", "Protocol"))]:
        yield f"A subclass of {', '.join(code(base) for base in shown)}."
    fields = [_field(one) for one in members if isinstance(one.node, ast.AnnAssign) and _is_public(one.name)]
    if fields:
        yield table(("Field", "Type", "Description"), fields)
    for one in members:
        if not isinstance(one.node, ast.FunctionDef | ast.AsyncFunctionDef) or not _is_public(one.name):
            continue
        decorators = [ast.unparse(decorator) for decorator in one.node.decorator_list]
        if any(decorator.endswith(("overload", ".setter")) for decorator in decorators):
            continue
        yield f"#### {name}.{one.name}"
        if "property" in decorators:
            returns = one.node.returns
            yield f"```python\n{one.name}: {ast.unparse(returns) if returns else 'object'}\n```"
        else:
            yield _signature(one.node, one.name)
        yield paragraphs(one.docstring)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _field(one: Named) -> list[str]:
    assert isinstance(one.node, ast.AnnAssign)
    return [code(one.name), code(ast.unparse(one.node.annotation)), one.docstring]


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """The call as code: on one line if it fits into 88 columns, else an argument a line."""
    arguments = _arguments(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    awaited = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{awaited}{name}({', '.join(arguments)}){returns}"
    if len(line) > 88:
        line = f"{awaited}{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){returns}"
    return f"```python\n{line}\n```"


def _arguments(given: ast.arguments) -> list[str]:
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    shown = [_argument(one, default) for one, default in zip(positional, defaults, strict=True)]
    if positional and positional[0].arg in ("self", "cls"):
        shown = shown[1:]
    if given.vararg is not None:
        shown.append(f"*{_argument(given.vararg, None)}")
    elif given.kwonlyargs:
        shown.append("*")
    shown += [_argument(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        shown.append(f"**{_argument(given.kwarg, None)}")
    return shown


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation is not None else ""
    if default is None:
        return f"{one.arg}{kind}"
    return f"{one.arg}{kind}{' = ' if kind else '='}{ast.unparse(default)}"
