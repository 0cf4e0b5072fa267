"""When finished objects go."""
