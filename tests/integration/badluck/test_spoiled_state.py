"""What is kept was damaged: the start says which file, and touches nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kubernetes import client, config

from tests.integration.badluck.conftest import Unlucky
from tests.support.up import vcbatch


def garble_pages(database: Path) -> None:
    """The head stays: what is damaged is found only when it is read."""
    content = bytearray(database.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    database.write_bytes(content)


def spoil_an_object(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE objects SET body = ? WHERE name = 'default'", (b'{"metadata":',))
    connection.close()


def test_damage_is_told_and_left_as_it_is(program: Unlucky):
    program.up()
    program.down()
    database = program.state / "state.db"
    sound = database.read_bytes()
    for spoil in (garble_pages, spoil_an_object):
        database.write_bytes(sound)
        spoil(database)
        before = database.read_bytes()
        refused = vcbatch("up", "--detach", "--port", "0", "--state-dir", str(program.state), check=False)
        assert refused.returncode == 1, spoil.__name__
        assert str(database) in refused.stderr and "Traceback" not in refused.stderr, (spoil.__name__, refused.stderr)
        assert database.read_bytes() == before, spoil.__name__
    database.write_bytes(sound)
    program.up()


def test_damaged_certificates_are_made_anew(program: Unlucky):
    program.up()
    program.down()
    for name in ("ca.crt", "server.key", "token"):
        (program.state / "pki" / name).write_text("")
    program.up()
    with client.ApiClient(config.new_client_from_config(str(program.kubeconfig)).configuration) as connection:
        assert client.CoreV1Api(connection).list_node().items
