"""Name rules of Kubernetes, which the server shares with admission."""

from vcbatch.api.name_rules import (
    dns1035_label,
    dns_label,
    dns_subdomain,
    label_value,
    path_segment,
    qualified_name,
    regex_fault,
    too_long,
)

__all__ = [
    "dns1035_label",
    "dns_label",
    "dns_subdomain",
    "label_value",
    "path_segment",
    "qualified_name",
    "regex_fault",
    "too_long",
]
