"""Simulation: the scheduler on objects given as data, by the same code that places pods on a cluster.

`World.read` takes Kubernetes objects as mappings, `Simulation` runs cycles on them, each on the results of the one
before, and `cases` reads the two formats in which decisions of Volcano are recorded.
"""

from vcbatch.scheduler.simulation.cases import Case
from vcbatch.scheduler.simulation.outcome import Outcome, Round
from vcbatch.scheduler.simulation.simulation import MOMENT, Simulation, simulate
from vcbatch.scheduler.simulation.world import World, WorldError

__all__ = ["MOMENT", "Case", "Outcome", "Round", "Simulation", "World", "WorldError", "simulate"]
