"""What users write and read: typed, frozen, and exact on the wire."""
