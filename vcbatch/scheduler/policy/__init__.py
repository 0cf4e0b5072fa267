"""Policy files: read with the place of every fault, written out whole."""
