"""The controllers as running programs: each feeds keys to a queue, builds the view of an object, and carries out what
`vcbatch.core` decides."""
