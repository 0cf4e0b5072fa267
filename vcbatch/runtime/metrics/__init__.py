"""The metrics of the runtime, with the names that dashboards for Volcano use."""
