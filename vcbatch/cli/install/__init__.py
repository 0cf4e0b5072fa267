"""`vcbatch install` and `vcbatch uninstall`: the manifest of the chart, chosen, applied in order and waited for."""
