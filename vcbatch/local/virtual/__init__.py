"""Nodes that only pretend to run their pods: for simulation, at any scale and under any clock."""

from vcbatch.local.virtual.commands import Pretence, pretence
from vcbatch.local.virtual.kubelet import VirtualKubelet, VirtualNode

__all__ = ["Pretence", "VirtualKubelet", "VirtualNode", "pretence"]
