"""Resource quantities of queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vcbatch.api.model import ResourceList
from vcbatch.api.quantity import ZERO, MalformedQuantity, Quantity, parse_quantity
from vcbatch.api.validate.errors import ValidationError

Amounts = Mapping[str, Quantity]


def read(resources: ResourceList) -> dict[str, Quantity]:
    """The quantities; a malformed one, which `amount_errors` reports, counts as zero."""
    return {name: _quantity(given) for name, given in resources.items()}


def total(listed: Iterable[Amounts]) -> dict[str, Quantity]:
    """The sum for each resource."""
    result: dict[str, Quantity] = {}
    for amounts in listed:
        for name, amount in amounts.items():
            result[name] = result.get(name, ZERO) + amount
    return result


def amount_errors(resources: ResourceList, path: str) -> Iterator[ValidationError]:
    """Errors of quantities: malformed, negative, or fractions of indivisible resources."""
    for name, given in resources.items():
        field = f"{path}.{name}"
        try:
            amount = parse_quantity(given)
        except MalformedQuantity as error:
            yield ValidationError(field, f'{field}: Invalid value: "{given}": {error}')
            continue
        if amount < ZERO:
            yield ValidationError(field, f'{field}: Invalid value: "{amount}": must be greater than or equal to 0')
        if _is_whole(name) and amount.milli() % 1000:
            yield ValidationError(field, f'{field}: Invalid value: "{amount}": must be an integer')


def shown(amounts: Amounts) -> str:
    """The format of Volcano's resource vectors: cpu and everything but memory in thousandths."""
    parts = [f"cpu {_milli(amounts, 'cpu')}", f"memory {amounts.get('memory', ZERO).value()}.00"]
    parts += [f"{name} {_milli(amounts, name)}" for name in sorted(amounts) if name not in ("cpu", "memory")]
    return ", ".join(parts)


def _milli(amounts: Amounts, name: str) -> str:
    return f"{amounts.get(name, ZERO).milli()}.00"


def _quantity(given: str | float) -> Quantity:
    try:
        return parse_quantity(given)
    except MalformedQuantity:
        return ZERO


def _is_whole(name: str) -> bool:
    """Whether the resource is indivisible: pods, object counts and extended resources (`domain/name`, not Kubernetes'
    own), but not the capacity of devices by claim (`memory.deviceclass/name`)."""
    domain, slash, _ = name.partition("/")
    if domain.endswith(".deviceclass"):
        return False
    if name == "pods" or domain == "count":
        return True
    return bool(slash) and not domain.endswith("kubernetes.io") and not name.startswith("requests.")
