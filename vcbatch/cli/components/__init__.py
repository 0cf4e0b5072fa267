"""The programs of a cluster: scheduler, controllers and webhooks, with their options."""
