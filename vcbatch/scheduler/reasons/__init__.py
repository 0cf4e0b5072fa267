"""Why gangs wait, as data with numbers, and what a cycle tells the world."""
