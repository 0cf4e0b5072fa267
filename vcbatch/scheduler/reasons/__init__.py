"""Pending reasons of gangs, as data with numbers, and the reports of a cycle."""
