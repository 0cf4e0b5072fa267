"""`vcbatch migrate`: the consequences of a migration from Volcano, and its commands."""
