"""`vcbatch migrate`: what taking over a cluster from Volcano means, and the commands that do it."""
