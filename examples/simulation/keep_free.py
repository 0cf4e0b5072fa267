"""A scheduler plugin: no pods are placed on nodes with the label `reserve=yes`."""

import numpy as np

from vcbatch.scheduler.framework.plugin import Plugin, Rejection


class KeepFree(Plugin):
    def open(self, session):
        self._infos = session.nodes.infos

    def rejections(self, profile):
        kept = np.array([info.labels.get("reserve") == "yes" for info in self._infos], dtype=bool)
        return [Rejection("node(s) are reserved", kept)]


PLUGINS = {"keep-free": KeepFree}
