"""Configuration files that are followed, and what is said when one can't be used."""
