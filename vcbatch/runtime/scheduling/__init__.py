"""The scheduler as a running program: changes are fed in, decisions are applied."""
