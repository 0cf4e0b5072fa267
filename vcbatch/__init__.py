"""vcbatch: gang-scheduled batch jobs for machine-learning training, on a laptop or on Kubernetes."""

from vcbatch._version import __version__

__all__ = ["__version__"]
