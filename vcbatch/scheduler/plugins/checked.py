"""Validation of the results of custom plugins: an invalid result is reported as an error of the plugin, by name,
instead of failing in the code that uses it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, Final, cast

import numpy as np

from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import (
    Cap,
    Ledger,
    Normalise,
    OrderTerm,
    Plugin,
    Preference,
    Protection,
    Rejection,
    Verdict,
    Vote,
)
from vcbatch.scheduler.model.result import Shortage

_OWN: Final = "vcbatch.scheduler."
_LONGEST: Final = 80

_Check = Callable[["_Checked", Any, Sequence[Any]], str]
"""Receives the plugin, the result and the arguments; returns what the result should have been, empty if it is valid."""


class WrongAnswer(TypeError):
    """A method of a plugin returned an invalid result. `place` is the location of the method, `asked` its arguments."""

    def __init__(
        self, plugin: Plugin, hook: str, method: Callable[..., Any], text: str, asked: Sequence[object]
    ) -> None:
        super().__init__(text)
        self.plugin = plugin
        self.hook = hook
        code = getattr(method, "__code__", None)
        self.place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else method.__module__
        self.asked = asked


@functools.cache
def checked(cls: type[Plugin]) -> type[Plugin]:
    """The plugin with methods that raise `WrongAnswer` if their result is invalid."""
    methods = {name: _checked(name, method, check) for name, check in _CHECKS.items() if (method := _own(cls, name))}
    if not methods:
        return cls
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "open": _opened(cls.open), **methods}
    return cast(
        "type[Plugin]", types.new_class(cls.__name__, (_Checked, cls), exec_body=lambda space: space.update(body))
    )


class _Checked(Plugin):
    """Has the length that results for all nodes must have."""

    answers_about = 0
    """The number of nodes. The name is one that no plugin would use itself."""


def _opened(method: Callable[..., None]) -> Callable[..., None]:
    def opened(plugin: _Checked, session: Handle) -> None:
        plugin.answers_about = len(session.nodes)
        method(plugin, session)

    return opened


def _own(cls: type[Plugin], name: str) -> Callable[..., Any] | None:
    """The method, if it isn't one of this package."""
    owner = next(base for base in cls.__mro__ if name in base.__dict__)
    return None if owner.__module__.startswith(_OWN) else cast("Callable[..., Any]", getattr(cls, name))


def _checked(name: str, method: Callable[..., Any], check: _Check) -> Callable[..., Any]:
    # The first parameter isn't called `self`, by which tracebacks identify the object of a method.
    @functools.wraps(method)
    def asked(plugin: _Checked, *about: Any, **named: Any) -> Any:
        answer = method(plugin, *about, **named)
        wanted = check(plugin, answer, about)
        if wanted:
            raise WrongAnswer(plugin, name, method, f"{_shown(answer)}; must be {wanted}", about)
        return answer

    return asked


def _shown(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        array = cast("np.ndarray[Any, Any]", answer)
        bad = array.dtype.kind == "f" and not np.isfinite(array).all()
        return f"an array of {array.dtype} {list(array.shape)}" + (
            " with some that are no finite numbers" if bad else ""
        )
    text = repr(answer)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# One value ------------------------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return not isnan(cast("float", value))
    return isinstance(value, (int, np.integer))


def _number(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    return "" if _is_number(answer) else "a number"


def _numbers(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    fine = isinstance(answer, tuple) and all(map(_is_number, cast("tuple[Any, ...]", answer)))
    return "" if fine else "a tuple of numbers"


def _terms(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    def is_one(one: Any) -> bool:
        return isinstance(one.word, str) and one.sign in (-1, 0, 1) and isinstance(one.of, str)

    return "" if _listed(answer, OrderTerm, is_one) else "a list of OrderTerm(str, -1, 0 or 1, str)"


def _count(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    return "" if isinstance(answer, (int, np.integer)) and not isinstance(answer, bool) else "an int"


def _comparable(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    try:
        hash(answer)
    except TypeError:
        return "something that can be hashed, such as a tuple of numbers"
    return ""


def _of(*allowed: type, words: str) -> _Check:
    return lambda plugin, answer, about: "" if isinstance(answer, allowed) else words


_truth: Final = _of(bool, np.bool_, words="True or False")
_sentence: Final = _of(str, type(None), words="a str, or None")


# Pods -----------------------------------------------------------------------------------------------------------------


def _some_of(at: int) -> _Check:
    """Checks that the result has only tasks of the argument at this position."""

    def check(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
        if answer is None:
            return ""
        wanted = "None, or a list of tasks that are among those given"
        if not isinstance(answer, Sequence):
            return wanted
        named = {getattr(task, "uid", None) for task in cast("Sequence[Any]", answer)}
        return "" if not named or named <= {task.uid for task in about[at]} else wanted

    return check


# Nodes and domains ----------------------------------------------------------------------------------------------------


def _array(value: Any, shape: tuple[int, ...], *, mask: bool = False) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    array = cast("np.ndarray[Any, Any]", value)
    if mask:
        return array.dtype == np.bool_ and array.shape == shape
    return array.dtype.kind in "fiu" and array.shape == shape and not np.isnan(array).any()


def _listed(answer: Any, kind: type, fine: Callable[[Any], bool]) -> bool:
    if not isinstance(answer, Sequence):
        return False
    return all(isinstance(one, kind) and fine(one) for one in cast("Sequence[Any]", answer))


def _rejections(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    def is_one(one: Any) -> bool:
        masks = [one.nodes] if one.temporary is None else [one.nodes, one.temporary]
        return isinstance(one.reason, str) and all(_array(m, (plugin.answers_about,), mask=True) for m in masks)

    fine = _listed(answer, Rejection, is_one)
    return "" if fine else f"a list of Rejection(str, array of bool [{plugin.answers_about}])"


def _preferences(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    def is_one(one: Any) -> bool:
        points = _array(one.raw, (plugin.answers_about,)) and bool(np.isfinite(one.raw).all())
        return points and _is_number(one.weight) and isinstance(one.normalise, Normalise)

    fine = _listed(answer, Preference, is_one)
    return "" if fine else f"a list of Preference(array of finite numbers [{plugin.answers_about}], number, Normalise)"


def _caps(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    rows = len(about[1])
    fine = _listed(answer, Cap, lambda one: isinstance(one.reason, str) and _array(one.slots, (rows,)))
    return "" if fine else f"a list of Cap(str, array of numbers [{rows}])"


def _caps_empty(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    count = plugin.answers_about
    return "" if answer is None or _array(answer, (count,)) else f"None, or an array of numbers [{count}]"


def _scores(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    depths, rows = about[1].shape
    shapes = {(), (rows,), (1, rows), (depths, 1), (depths, rows)}
    fine = _is_number(answer) or any(_array(answer, shape) for shape in shapes)
    if answer is None or (fine and bool(np.isfinite(answer).all())):
        return ""
    return f"None, or an array of finite numbers [{depths}, {rows}] or [{rows}]"


def _points(at: int) -> _Check:
    """Checks that the result has one score for each element of the argument at this position."""

    def check(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
        count = len(about[at])
        if answer is None or (_array(answer, (count,)) and bool(np.isfinite(answer).all())):
            return ""
        return f"None, or an array of finite numbers [{count}]"

    return check


def _order(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    if answer is None:
        return ""
    known = {int(number) for group in about[2] for number in group}
    fine = _listed(answer, np.ndarray, lambda group: group.dtype.kind in "iu" and known.issuperset(group.tolist()))
    return "" if fine else "None, or a list of arrays of numbers that are among those given"


def _keys(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    count = len(about[0])
    return "" if answer is None or _array(answer, (count,)) else f"None, or an array of numbers [{count}]"


def _possible(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    count = len(about[3].jobs)
    return "" if answer is None or _array(answer, (count,), mask=True) else f"None, or an array of bool [{count}]"


def _shortages(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    return (
        ""
        if _listed(answer, Shortage, lambda one: all(isinstance(part, str) for part in one))
        else "a list of Shortage"
    )


def _texts(plugin: _Checked, answer: Any, about: Sequence[Any]) -> str:
    fine = isinstance(answer, Mapping) and all(
        isinstance(key, str) and isinstance(value, str) for key, value in cast("Mapping[Any, Any]", answer).items()
    )
    return "" if fine else "a dict of str to str"


_CHECKS: Final[Mapping[str, _Check]] = {
    "job_key": _number,
    "job_keys": _keys,
    "task_key": _number,
    "queue_key": _numbers,
    "queue_terms": _terms,
    "victim_queue_key": _numbers,
    "job_valid": _sentence,
    "queue_error": _sentence,
    "overused": _sentence,
    "job_ready": _truth,
    "job_starving": _truth,
    "preemptive": _truth,
    "admission_needed": _truth,
    "couples": _truth,
    "tasks_until_ready": _count,
    "room": _count,
    "room_of": _count,
    "job_pipelined": _of(Vote, words="a Vote"),
    "enqueueable": _of(Verdict, words="a Verdict"),
    "barred": _of(Verdict, type(None), words="a Verdict, or None"),
    "ledger": _of(Ledger, type(None), words="a Ledger, or None"),
    "preemptable": _some_of(1),
    "reclaimable": _some_of(1),
    "evictable": _some_of(1),
    "share_left": _shortages,
    "unwanted": _some_of(0),
    "movable": _some_of(0),
    "protection": _of(Protection, type(None), words="a Protection, or None"),
    "admission_key": _comparable,
    "limit_stamp": _comparable,
    "possible_victims": _possible,
    "rejections": _rejections,
    "task_rejections": _rejections,
    "preferences": _preferences,
    "caps": _caps,
    "caps_later": _caps,
    "caps_empty": _caps_empty,
    "scores": _scores,
    "task_scores": _points(1),
    "domain_scores": _points(1),
    "domain_order": _order,
    "binding_annotations": _texts,
    "node_lock": _of(str, words="a str"),
}
"""By method. The other methods return nothing, or what only their own plugin reads."""
