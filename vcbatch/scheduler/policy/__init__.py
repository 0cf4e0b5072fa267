"""Policy files: read with the place of every error, written out whole."""
