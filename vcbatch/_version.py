"""The version of vcbatch, read by the build and printed by `vcbatch --version`."""

__version__ = "0.1.0"
