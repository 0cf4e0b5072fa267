"""Functions of expressions that Kubernetes adds: quantities, URLs, IP addresses.

Source: k8s.io/apiserver `pkg/cel/library`.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# Values of expressions have any type; what has the wrong one raises TypeError, which ends the expression.

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from vcbatch.api.cel.evaluate import Function
from vcbatch.api.cel.support import plain
from vcbatch.api.cel.values import CelError, no_overload
from vcbatch.api.quantity import MalformedQuantity, Quantity, parse_quantity

_MILLI = 1000


def _quantity(text: str) -> Quantity:
    return parse_quantity(text)


def _can(parse: Callable[[Any], Any]) -> Function:
    def check(text: Any) -> bool:
        try:
            parse(text)
        except (ValueError, CelError, MalformedQuantity):
            return False
        return True

    return plain(check)


def _order(left: Any, right: Any) -> int:
    if type(left) is not type(right):
        raise no_overload()
    return (left > right) - (left < right)


def _url(text: str) -> SplitResult:
    if not re.fullmatch(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s]*|/[^\s]*)", text):
        raise CelError(f'URL parse error during conversion from string: parse "{text[:100]}": invalid URI for request')
    return urlsplit(text)


def _url_host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _ip(text: Any) -> Any:
    return ipaddress.ip_address(text)


def _cidr(text: str) -> Any:
    if "/" not in text:
        raise CelError(f"network address parse error during conversion from string: {text[:100]}")
    return ipaddress.ip_interface(text)


def _contains_ip(network: Any, address: Any) -> bool:
    address = _ip(address) if isinstance(address, str) else address
    return address in network.network


def _contains_cidr(network: Any, other: Any) -> bool:
    other = _cidr(other) if isinstance(other, str) else other
    return network.version == other.version and other.network.subnet_of(network.network)


_LINK_LOCAL = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


KUBERNETES: Mapping[str, Function] = {
    "quantity": plain(_quantity),
    "isQuantity": _can(parse_quantity),
    "isInteger": plain(lambda one: one.milli() % _MILLI == 0),
    "asInteger": plain(lambda one: one.milli() // _MILLI),
    "asApproximateFloat": plain(lambda one: one.milli() / _MILLI),
    "sign": plain(lambda one: (one.milli() > 0) - (one.milli() < 0)),
    "add": plain(lambda one, other: one + (parse_quantity(str(other)) if isinstance(other, int) else other)),
    "sub": plain(lambda one, other: one - (parse_quantity(str(other)) if isinstance(other, int) else other)),
    "compareTo": plain(_order),
    "isLessThan": plain(lambda one, other: _order(one, other) < 0),
    "isGreaterThan": plain(lambda one, other: _order(one, other) > 0),
    "url": plain(_url),
    "isURL": _can(_url),
    "getScheme": plain(lambda url: url.scheme),
    "getHost": plain(_url_host),
    "getHostname": plain(lambda url: url.hostname or ""),
    "getPort": plain(lambda url: str(url.port or "")),
    "getEscapedPath": plain(lambda url: url.path),
    "getQuery": plain(lambda url: parse_qs(url.query, keep_blank_values=True)),
    "ip": plain(lambda value: value.ip if hasattr(value, "ip") else _ip(value)),
    "isIP": plain(_is_ip),
    "ip.isCanonical": plain(lambda text: str(_ip(text)) == text),
    "family": plain(lambda address: address.version),
    "isUnspecified": plain(lambda address: address.is_unspecified),
    "isLoopback": plain(lambda address: address.is_loopback),
    "isLinkLocalMulticast": plain(lambda address: address in _LINK_LOCAL[address.version]),
    "isLinkLocalUnicast": plain(lambda address: address.is_link_local),
    "isGlobalUnicast": plain(
        lambda address: not (address.is_multicast or address.is_loopback or address.is_unspecified)
    ),
    "cidr": plain(_cidr),
    "isCIDR": _can(_cidr),
    "containsIP": plain(_contains_ip),
    "containsCIDR": plain(_contains_cidr),
    "masked": plain(lambda network: ipaddress.ip_interface(str(network.network))),
    "prefixLength": plain(lambda network: network.network.prefixlen),
}
