"""Builds that come and go: install, uninstall, install again, upgrade and roll back, while gangs run.

By its name this module comes before those that need the newest build, so that they find it installed.
"""

from __future__ import annotations

from tests.nodes.builds import Build
from tests.nodes.installed import Installed
from tests.nodes.lifecycle import LifeCycle
from tests.nodes.namespace import Namespace, container, job, task


def test_an_installation_is_noticed_by_nobody_but_those_who_wait_for_it(release: Installed, life: LifeCycle) -> None:
    """From the first job that the API server knows on, none is refused and all run."""
    assert release.build is None, "another test has installed it"
    with life.scenario("install", vcbatch=False) as scenario:
        scenario.led = False
        release.install(release.newest)


def test_jobs_outlive_the_release_and_go_on_with_the_next(
    release: Installed, all_builds: list[Build], life: LifeCycle, namespace: Namespace
) -> None:
    """Nothing keeps pods and jobs from being made meanwhile, running ones go on, and those that waited complete."""
    release.ensure(release.newest)
    waits = container("while ! test -e /tmp/end; do sleep 0.2; done")
    namespace.submit(job("gang", task("member", 2, waits)))
    before = {pod["metadata"]["uid"] for pod in namespace.wait_running("gang", 2)}
    with life.scenario("uninstall, install again") as scenario:
        scenario.led = False
        release.uninstall()
        assert not release.configurations("validating")
        assert not release.configurations("mutating")
        namespace.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "plain"},
                "spec": {"restartPolicy": "Never", "containers": [container("true")]},
            }
        )
        namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/plain", "--timeout=60s")
        assert namespace.phase("gang") == "Running"
        scenario.client.wait_accepted(after=len(scenario.client.accepted))
        scenario.go()
        release.install(all_builds[0])
    assert {each["metadata"]["uid"] for each in namespace.running("gang")} == before
    for index in range(2):
        namespace.kubectl("exec", f"gang-member-{index}", "--", "touch", "/tmp/end")
    namespace.wait_phase("gang", "Completed")


def test_an_upgrade_disturbs_no_gang(release: Installed, earlier: Build, life: LifeCycle) -> None:
    """Every pod of the release is replaced by one of this checkout."""
    release.ensure(earlier)
    ours = release.uids()
    with life.scenario("upgrade from the build before") as scenario:
        scenario.go()
        release.upgrade(release.newest)
        assert not ours & release.uids()


def test_a_rollback_disturbs_no_gang(release: Installed, earlier: Build, life: LifeCycle) -> None:
    """Every pod of the release is replaced by one of the build before, which goes on with what the newer one wrote."""
    if release.revisions[-2:] != [earlier, release.newest]:
        release.ensure(earlier)
        release.ensure(release.newest)
    ours = release.uids()
    with life.scenario("rollback to the build before"):
        release.rollback()
        assert not ours & release.uids()
