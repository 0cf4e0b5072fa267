"""Custom kinds: the validation of CustomResourceDefinitions, and the resources that they define."""

from vcbatch.local.apiserver.crds.definition import served
from vcbatch.local.apiserver.crds.registry import CrdRegistry

__all__ = ["CrdRegistry", "served"]
