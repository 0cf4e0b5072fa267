"""The state of a cluster as far as it matters for installation, migration and diagnosis: read once, then evaluated
without I/O."""

from vcbatch.cli.inventory.findings import Finding, Level, Purpose, findings
from vcbatch.cli.inventory.model import Inventory

__all__ = ["Finding", "Inventory", "Level", "Purpose", "findings"]
