"""Reads the protobuf bodies that clients in Go send for built-in kinds; answers are always JSON."""

from vcbatch.local.apiserver.protobuf.decoder import decode

__all__ = ["decode"]
