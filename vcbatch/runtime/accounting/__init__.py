"""Accounting: the store of records, and the part of the controllers that writes it."""
