"""The last known state of the cluster, kept up to date by watches."""
