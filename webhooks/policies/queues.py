"""Rules of queues."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api import names
from vcbatch.api.queue import DEFAULT, ROOT
from webhooks.policies.expressions import FLOAT, Rule, annotation, listed, matches, text

_PATTERN = "^[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?$"


def variables() -> dict[str, str]:
    """The variables of the rules."""
    path, weights = (annotation(name) for name in (names.HIERARCHY, names.HIERARCHY_WEIGHTS))
    before = [annotation(name, "oldObject") for name in (names.HIERARCHY, names.HIERARCHY_WEIGHTS)]
    same = f"object.?spec == oldObject.?spec && {path} == {before[0]} && {weights} == {before[1]}"
    return {
        "capability": "object.?spec.?capability.orValue({})",
        "deserved": "object.?spec.?deserved.orValue({})",
        "guarantee": "object.?spec.?guarantee.?resource.orValue({})",
        "path": f"{path}.orValue('')",
        "weights": f"{weights}.orValue('')",
        "unchanged": f"oldObject != null && {same}",
    }


def rules() -> Iterator[Rule]:
    """Rules of a queue by itself."""
    for which, field in (("capability", "capability"), ("deserved", "deserved"), ("guarantee", "guarantee.resource")):
        amounts = f"variables.{which}"
        yield _judged(
            f"{amounts}.all(k, isQuantity(string({amounts}[k])) && {_compared(amounts, chr(39) + '0' + chr(39))} >= 0)",
            f"requestBody.spec.{field}: must be quantities, greater than or equal to 0",
        )
        number = f"quantity(string({amounts}[k])).asApproximateFloat()"
        yield _judged(
            f"{amounts}.all(k, !({_WHOLE}) || double(int({number})) == {number})",
            f"requestBody.spec.{field}: pods, counts and extended resources must be integers",
        )
    least = _compared("variables.deserved", "string(variables.guarantee[k])")
    none = f"{_compared('variables.guarantee', chr(39) + '0' + chr(39))} == 0"
    yield _judged(
        f"variables.guarantee.all(k, k in variables.deserved ? {least} >= 0 : {none})",
        "requestBody.spec.deserved: must be >= guarantee",
    )
    most = _compared("variables.deserved", "string(variables.capability[k])")
    yield _judged(
        f"variables.deserved.all(k, !(k in variables.capability) || {most} <= 0)",
        "requestBody.spec.deserved: must be <= capability",
    )
    yield _judged(
        "variables.path.split('/').size() == variables.weights.split('/').size()",
        f"{names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}",
    )
    weight = f"{matches('w', FLOAT)} && double(w) > 0.0"
    yield _judged(
        f"variables.weights == '' || variables.weights.split('/').all(w, {weight})",
        f"{names.HIERARCHY_WEIGHTS}: must be numbers larger than 0",
    )
    root = " && ".join(
        f"object.?spec.?{field} == oldObject.?spec.?{field}" for field in ("capability", "deserved", "guarantee")
    )
    yield Rule(
        f"oldObject == null || object.metadata.name != {text(ROOT)} || ({root})",
        "queue `root` can not be modified: its capability, deserved and guarantee are the cluster's",
    )
    allowed = annotation(names.ALLOWED_NAMESPACES)
    pattern = matches("n.trim()", _PATTERN)
    yield Rule(
        f"{allowed}.orValue('').split(',').all(n, n.trim() == '' || {pattern})"
        f" || (variables.unchanged && {allowed} == {annotation(names.ALLOWED_NAMESPACES, 'oldObject')})",
        f"annotation {names.ALLOWED_NAMESPACES}: want names of namespaces, in which * stands for any characters",
    )


def deletion_rules() -> Iterator[Rule]:
    """Rules of queues that may not be deleted. On deletion only the old object is present."""
    yield Rule(
        f"!(oldObject.metadata.name in {listed((ROOT, DEFAULT))})", f"`{ROOT}` and `{DEFAULT}` queue can not be deleted"
    )


_WHOLE = (
    "k == 'pods' || k.startsWith('count/') || (k.contains('/') && !k.startsWith('requests.')"
    " && !k.split('/')[0].endsWith('kubernetes.io'))"
)
"""Indivisible resources."""


def _compared(amounts: str, other: str) -> str:
    return f"quantity(string({amounts}[k])).compareTo(quantity({other}))"


def _judged(holds: str, message: str) -> Rule:
    return Rule(f"variables.unchanged || ({holds})", message)
