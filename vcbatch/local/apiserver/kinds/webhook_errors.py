"""Validation of webhook configurations.

Source: kubernetes `pkg/apis/admissionregistration/validation` and apiserver `pkg/util/webhook/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.local.apiserver import expressions
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.registry import Json

REVIEW_VERSIONS = ("v1", "v1beta1")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_TIMEOUT = 30
_MOST_CONDITIONS = 64
_URL_FORM = "; desired format: https://host[/path]"

CONDITION_VARIABLES = frozenset({"object", "oldObject", "request"})
"""The variables of a match condition."""


def configuration_errors(configuration: Json, *, mutating: bool) -> Iterator[FieldError]:
    """All errors of a Mutating- or ValidatingWebhookConfiguration except those of its metadata."""
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        yield from _webhook_errors(webhook, path, mutating=mutating)
        yield from _version_errors(webhook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions")
        name = webhook.get("name") or ""
        if name in seen:
            yield field_errors.duplicate(f"{path}.name", name)
        elif name:
            seen.add(name)


def _webhook_errors(webhook: Json, path: str, *, mutating: bool) -> Iterator[FieldError]:
    yield from _name_errors(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    yield from _choice(webhook, "failurePolicy", ("Fail", "Ignore"), path)
    yield from _choice(webhook, "matchPolicy", ("Equivalent", "Exact"), path)
    if webhook.get("sideEffects") is None:
        yield field_errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    yield from _choice(webhook, "sideEffects", _SIDE_EFFECTS, path)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT} seconds"
        yield field_errors.invalid(f"{path}.timeoutSeconds", seconds, detail)
    for key in ("namespaceSelector", "objectSelector"):
        if webhook.get(key) is not None:
            yield from selectors.selector_errors(webhook[key], f"{path}.{key}")
    if mutating:
        yield from _choice(webhook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    yield from _client_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_errors(webhook.get("matchConditions") or (), f"{path}.matchConditions", CONDITION_VARIABLES)


def _choice(source: Json, key: str, allowed: Sequence[str], path: str) -> Iterator[FieldError]:
    if source.get(key) is not None and source[key] not in allowed:
        yield field_errors.unsupported(f"{path}.{key}", source[key], allowed)


def _name_errors(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield field_errors.required(path)
    elif wrong := name_rules.dns_subdomain(name):
        yield field_errors.invalid(path, name, ",".join(wrong))
    elif name.count(".") < 2:
        yield field_errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _version_errors(versions: Sequence[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield field_errors.required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield field_errors.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from field_errors.invalid_each(f"{path}[{index}]", version, name_rules.dns1035_label(version))
    if not any(version in REVIEW_VERSIONS for version in versions):
        yield field_errors.invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


# -- rules ----------------------------------------------------------------------------------------------------------


def rule_errors(rule: Json, path: str) -> Iterator[FieldError]:
    """Errors of a rule with operations."""
    operations: Sequence[str] = rule.get("operations") or ()
    yield from _not_beside_others(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield field_errors.unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _not_beside_others(rule.get("apiGroups") or (), f"{path}.apiGroups", "API groups")
    versions: Sequence[str] = rule.get("apiVersions") or ()
    yield from _not_beside_others(versions, f"{path}.apiVersions", "API versions")
    for index, version in enumerate(versions):
        if not version:
            yield field_errors.required(f"{path}.apiVersions[{index}]")
    yield from _resource_errors(rule.get("resources") or (), f"{path}.resources")
    yield from _choice(rule, "scope", _SCOPES, path)


def _not_beside_others(values: Sequence[str], path: str, what: str) -> Iterator[FieldError]:
    if not values:
        yield field_errors.required(path)
    if len(values) > 1 and "*" in values:
        yield field_errors.invalid(path, list(values), f"if '*' is present, must not specify other {what}")


def _resource_errors(resources: Sequence[str], path: str) -> Iterator[FieldError]:
    if not resources:
        yield field_errors.required(path)
    all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    for index, resource in enumerate(resources):
        at = f"{path}[{index}]"
        if not resource:
            yield field_errors.required(at)
        name, slash, sub = resource.partition("/")
        if not slash:
            continue
        if name in all_subresources:
            yield field_errors.invalid(at, resource, f"if '{name}/*' is present, must not specify {resource}")
        if sub in of_all_resources:
            yield field_errors.invalid(at, resource, f"if '*/{sub}' is present, must not specify {resource}")
        if sub == "*":
            all_subresources.add(name)
        if name == "*":
            of_all_resources.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        yield field_errors.invalid(path, list(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and any(resource not in ("", "*") and "/" not in resource for resource in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        yield field_errors.invalid(path, list(resources), detail)


# -- clients --------------------------------------------------------------------------------------------------------


def _client_errors(client: Json, path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield field_errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_errors(url, f"{path}.url")
    else:
        yield from _service_errors(service or {}, f"{path}.service")


def _url_errors(url: str, path: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield field_errors.required(path, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme != "https":
        yield field_errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    if not host:
        yield field_errors.invalid(path, host, f"host must be specified{_URL_FORM}")
    if "@" in parts.netloc:
        yield field_errors.invalid(
            path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"
        )
    if parts.fragment:
        yield field_errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield field_errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_errors(service: Json, path: str) -> Iterator[FieldError]:
    for key in ("name", "namespace"):
        if not service.get(key):
            yield field_errors.required(f"{path}.{key}")
    port = service.get("port", 0)
    if not 1 <= port <= 65535:
        yield field_errors.invalid(f"{path}.port", port, f"port is not valid: {field_errors.between(1, 65535)}")
    yield from _path_errors(service.get("path") or "", f"{path}.path")


def _path_errors(given: str, path: str) -> Iterator[FieldError]:
    if given in ("", "/"):
        return
    if given == "//":
        yield field_errors.invalid(path, given, "segment[0] may not be empty")
        return
    if not given.startswith("/"):
        yield field_errors.invalid(path, given, "must start with a '/'")
    for index, step in enumerate(given[1:].removesuffix("/").split("/")):
        if not step:
            yield field_errors.invalid(path, given, f"segment[{index}] may not be empty")
        for wrong in name_rules.dns_subdomain(step) if step else ():
            yield field_errors.invalid(path, given, f"segment[{index}]: {wrong}")


# -- conditions -----------------------------------------------------------------------------------------------------


def condition_errors(conditions: Sequence[Json], path: str, declared: frozenset[str]) -> Iterator[FieldError]:
    """Errors of match conditions over the `declared` variables."""
    if len(conditions) > _MOST_CONDITIONS:
        yield field_errors.too_many(path, len(conditions), _MOST_CONDITIONS)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        yield from expression_errors(condition.get("expression") or "", f"{at}.expression", declared)
        name = condition.get("name") or ""
        if not name:
            yield field_errors.required(f"{at}.name")
        yield from field_errors.invalid_each(f"{at}.name", name, name_rules.qualified_name(name) if name else ())
        if name in seen:
            yield field_errors.duplicate(f"{at}.name", name)
        elif name:
            seen.add(name)


def expression_errors(expression: str, path: str, declared: frozenset[str]) -> Iterator[FieldError]:
    """Errors of one expression, which is required."""
    expression = expression.strip()
    if not expression:
        yield field_errors.required(path)
    elif wrong := expressions.error(expression, declared):
        yield field_errors.invalid(path, expression, wrong)
