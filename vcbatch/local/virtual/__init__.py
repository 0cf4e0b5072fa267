"""Simulated nodes, whose pods run nothing: for simulation, at any scale and under any clock."""

from vcbatch.local.virtual.kubelet import VirtualKubelet
from vcbatch.local.virtual.node import VirtualNode
from vcbatch.local.virtual.pretence import PodPretence, Pretence

__all__ = ["PodPretence", "Pretence", "VirtualKubelet", "VirtualNode"]
