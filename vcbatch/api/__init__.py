"""The vocabulary: models, names, reasons, quantities, defaulting and validation. Pure: no I/O, no clock."""
