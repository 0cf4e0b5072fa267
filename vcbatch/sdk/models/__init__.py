"""The models that users write and read: typed, frozen, and lossless on the wire."""
