"""Decodes the protobuf bodies that Go clients send for built-in kinds; responses are always JSON."""

from vcbatch.local.apiserver.protobuf.decoder import decode

__all__ = ["decode"]
