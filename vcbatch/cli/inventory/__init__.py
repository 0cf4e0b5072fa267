"""What is in a cluster that matters for installing, migrating and checking: read once, then validated without I/O."""

from vcbatch.cli.inventory.findings import Finding, Level, Purpose, findings
from vcbatch.cli.inventory.model import Inventory

__all__ = ["Finding", "Inventory", "Level", "Purpose", "findings"]
