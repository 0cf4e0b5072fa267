"""Commands that clients run in containers: their streams, their terminal, and how they end. Real processes."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.kubelet.world import LONG, PATIENCE, World, no_process, processes_with, shell, world
from vcbatch.api.resources import PODS
from vcbatch.interfaces.processes import Session
from vcbatch.local.kubelet import ConnectionRefusedHereError, ConnectionUnavailableError, Mode
from vcbatch.local.kubelet import TooManyConnectionsError as TooMany
from vcbatch.local.kubelet import connections as connections_

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")


@pytest.fixture(params=[None, Mode.PLAIN], ids=["best", "plain"])
async def node(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with world(tmp_path, mode=request.param) as made:
        yield made


async def running(node: World, *containers: object, name: str = "p") -> None:
    await node.pod(name, *(containers or (shell("echo up; sleep 600", env=[{"name": "A", "value": "b"}]),)))  # type: ignore[arg-type]
    await node.phase(name, "Running")


async def start(node: World, script: str, *, stdin: bool = False, tty: bool = False) -> Session:
    return await node.kubelet.connections.exec("default", "p", "main", ["sh", "-c", script], stdin=stdin, tty=tty)


async def said(session: Session) -> dict[int, bytes]:
    """Everything a session prints, by stream."""
    found = {1: b"", 2: b""}
    async with asyncio.timeout(PATIENCE):
        async for stream, chunk in session.output():
            found[stream] += chunk
    return found


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until_printed(session: Session, text: bytes) -> None:
    seen = b""
    async with asyncio.timeout(PATIENCE):
        async for _, chunk in session.output():
            seen += chunk
            if text in seen:
                return
    raise AssertionError(seen)


async def test_a_command_has_the_containers_environment_and_streams_of_its_own(node: World) -> None:
    await running(node)
    session = await start(node, "echo $A; echo err >&2; cat; exit 4", stdin=True)
    await session.write(b"in")
    session.close_input()
    assert await said(session) == {1: b"b\nin", 2: b"err\n"}
    assert await session.exit_code() == 4
    await session.close()
    assert "err" not in await node.logs("p")


@pytest.mark.parametrize(("script", "code"), [("kill -TERM $$", 143), ("true", 0), ("exit 255", 255)])
async def test_exit_codes_are_a_shells(node: World, script: str, code: int) -> None:
    await running(node)
    session = await start(node, script)
    await said(session)
    assert await session.exit_code() == code
    await session.close()


async def test_much_output_waits_for_its_reader_and_arrives_whole(node: World) -> None:
    await running(node)
    session = await start(node, "head -c 5000000 /dev/zero")
    assert await said(session) == {1: bytes(5_000_000), 2: b""}
    await session.close()


async def test_a_command_is_over_though_its_children_hold_its_streams(node: World) -> None:
    await running(node)
    session = await start(node, f"sleep {LONG}4 & echo done")
    assert (await said(session))[1] == b"done\n"
    assert await session.exit_code() == 0
    await session.close()
    assert processes_with(f"sleep {LONG}4")  # as in Kubernetes, it is the container's now
    await node.api.delete(PODS, "p", namespace="default", grace_seconds=0)
    await no_process(f"sleep {LONG}4")


async def test_a_terminal_knows_its_size_and_hears_of_changes(node: World) -> None:
    await running(node)
    script = "trap 'stty size; exit' WINCH; test -t 0 && echo tty $TERM; while :; do sleep 0.05; done"
    session = await start(node, script, stdin=True, tty=True)
    await until_printed(session, b"tty xterm\r\n")
    session.resize(columns=91, rows=17)
    assert b"17 91" in (await said(session))[1]
    await session.close()


async def test_the_end_of_a_terminals_input_ends_a_reader(node: World) -> None:
    await running(node)
    session = await start(node, "cat; echo over", stdin=True, tty=True)
    session.close_input()
    assert b"over" in (await said(session))[1]
    await session.close()


async def test_a_session_that_is_closed_takes_its_command_along(node: World) -> None:
    await running(node)
    session = await start(node, f"trap '' HUP TERM; setsid sleep {LONG}5 & sleep {LONG}6; sleep {LONG}7")
    await session.close()
    await session.close()
    await no_process(f"sleep {LONG}")


async def test_a_command_ends_with_its_container(node: World) -> None:
    await running(node)
    session = await start(node, f"sleep {LONG}8")
    await node.api.delete(PODS, "p", namespace="default", grace_seconds=0)
    await said(session)
    assert await session.exit_code() in (129, 137, 143)
    await session.close()
    await no_process(f"sleep {LONG}8")


async def test_a_command_ends_with_the_kubelet_and_says_so(node: World) -> None:
    await running(node)
    session = await start(node, f"sleep {LONG}9")
    await node.stop()
    await said(session)
    assert await session.exit_code() in (129, 137, 143)
    await session.close()
    await no_process(f"sleep {LONG}9")
    await node.start()


async def test_nothing_is_left_of_a_command_in_the_record(node: World) -> None:
    await running(node)
    before = open_descriptors()
    session = await start(node, "true")
    await said(session)
    await session.close()
    assert open_descriptors() == before
    assert list((node.root / "kubelet").rglob("exec-*")) == []


async def test_what_cannot_be_started_is_said(node: World) -> None:
    connect = node.kubelet.connections
    await running(node)
    with pytest.raises(ConnectionUnavailableError, match=r"executable file not found in \$PATH"):
        await connect.exec("default", "p", "main", ["no-such"], stdin=False, tty=False)
    for name, container, words in (
        ("p", "other", r'container not found \("other"\)'),
        ("nobody", "main", "no processes on this machine"),
    ):
        with pytest.raises(ConnectionUnavailableError, match=words):
            await connect.exec("default", name, container, ["true"], stdin=False, tty=False)
    with pytest.raises(ConnectionUnavailableError, match="not running"):
        await connect.dial("default", "nobody", 80)


async def test_only_so_many_sessions_at_a_time(node: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_, "MAX_SESSIONS", 1)
    await running(node)
    session = await start(node, "sleep 600")
    with pytest.raises(TooMany, match="1 sessions are open"):
        await start(node, "true")
    await session.close()
    await (await start(node, "true")).close()


async def test_input_for_one_client_ends_with_it(node: World) -> None:
    await running(node, shell("cat; echo over; sleep 600", stdin=True, stdinOnce=True))
    attach = node.kubelet.connections.attach
    session = await attach("default", "p", "main", stdin=True, tty=False)
    await session.write(b"hello\n")
    await session.close()
    await node.log_has("p", "hello\nover\n")
    with pytest.raises(ConnectionRefusedHereError, match="is closed"):
        await attach("default", "p", "main", stdin=True, tty=False)


async def test_input_stays_open_between_clients(node: World) -> None:
    await running(node, shell("while read x; do echo got $x; done; echo over; sleep 600", stdin=True))
    for word in ("one", "two"):
        session = await node.kubelet.connections.attach("default", "p", "main", stdin=True, tty=False)
        await session.write(f"{word}\n".encode())
        await session.close()
        await node.log_has("p", f"got {word}\n")
    assert "over" not in await node.logs("p")


async def test_what_a_container_does_not_have_is_refused(node: World) -> None:
    await running(node)
    attach = node.kubelet.connections.attach
    with pytest.raises(ConnectionRefusedHereError, match=r"stdin is not true"):
        await attach("default", "p", "main", stdin=True, tty=False)
    with pytest.raises(ConnectionRefusedHereError, match="no terminal"):
        await attach("default", "p", "main", stdin=False, tty=True)


async def test_a_port_is_reached_at_the_pods_own_address(node: World) -> None:
    script = (
        "import os,socket; s=socket.create_server((os.environ['IP'],0)); print('port',s.getsockname()[1],flush=True);"
        "c,_=s.accept(); c.sendall(b'hi')"
    )
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    await running(node, {"name": "main", "image": "any", "command": [sys.executable, "-c", script], "env": env})
    await node.log_has("p", "port ")
    port = int((await node.logs("p")).split()[1])
    reader, writer = await node.kubelet.connections.dial("default", "p", port)
    assert await asyncio.wait_for(reader.read(), PATIENCE) == b"hi"
    writer.close()
    await node.over("p")
    with pytest.raises(ConnectionUnavailableError):
        await node.kubelet.connections.dial("default", "p", port)
