"""The controllers as running programs. Each queues keys, builds the view of an object, and applies the decision of
`vcbatch.core`."""
