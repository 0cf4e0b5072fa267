"""Programs that write parts of the documentation: the reference pages, and the recordings of a terminal."""
