"""Amounts of resources, as queues are given them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vcbatch.api.model import ResourceList
from vcbatch.api.quantity import ZERO, MalformedQuantity, Quantity, parse_quantity
from vcbatch.api.validate.errors import ValidationError

Amounts = Mapping[str, Quantity]


def read(resources: ResourceList) -> dict[str, Quantity]:
    """The amounts; a malformed one, which `amount_errors` reports, counts as nothing."""
    return {name: _quantity(given) for name, given in resources.items()}


def total(listed: Iterable[Amounts]) -> dict[str, Quantity]:
    """Their sum, for each resource."""
    result: dict[str, Quantity] = {}
    for amounts in listed:
        for name, amount in amounts.items():
            result[name] = result.get(name, ZERO) + amount
    return result


def amount_errors(resources: ResourceList, path: str) -> Iterator[ValidationError]:
    """Amounts are quantities, not negative, and whole where the resource only comes whole."""
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
    """As Volcano writes a vector of resources: cpu and everything but memory in thousandths."""
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
    """Pods, object counts and extended resources (`domain/name`, not Kubernetes' own); not the capacity of devices by
    claim (`memory.deviceclass/name`)."""
    domain, slash, _ = name.partition("/")
    if domain.endswith(".deviceclass"):
        return False
    if name == "pods" or domain == "count":
        return True
    return bool(slash) and not domain.endswith("kubernetes.io") and not name.startswith("requests.")
