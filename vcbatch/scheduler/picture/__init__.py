"""The picture of the cluster that decisions are made on: objects as they were told, in arrays."""
