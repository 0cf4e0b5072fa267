"""`vcbatch install` and `vcbatch uninstall`: the chart's manifest with the user's choices, applied in order."""
