"""Custom kinds: what a CustomResourceDefinition may say, and the resources that it makes."""

from vcbatch.local.apiserver.crds.definition import served
from vcbatch.local.apiserver.crds.registry import CrdRegistry

__all__ = ["CrdRegistry", "served"]
