"""When finished objects are deleted."""
