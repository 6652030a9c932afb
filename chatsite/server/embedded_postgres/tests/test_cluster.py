"""The embedded PostgreSQL: made, shared, left, and found again after a crash. Slow to make, so made once."""

import os
import shutil
import signal
import stat
import time
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from chatsite.environment import django_database
from chatsite.server.embedded_postgres import (
    Cluster,
    EmbeddedDatabaseError,
    connection_parameters,
    running,
    secret_key,
)
from chatsite.server.embedded_postgres.commands import data_directory
from chatsite.server.embedded_postgres.paths import (
    SOCKET_PATH_LIMIT,
    socket_directory,
    write_secret,
)
from chatsite.tests.leftovers import temporary_folder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    folder = temporary_folder()
    yield folder
    Cluster(folder).stop()
    shutil.rmtree(folder)


def answer(data, statement="SELECT 1"):
    with psycopg.connect(**connection_parameters(data), connect_timeout=5) as connection:
        return connection.execute(statement).fetchone()[0]


def is_up(data):
    try:
        return answer(data) == 1
    except psycopg.OperationalError:
        return False


def test_the_server_runs_as_long_as_a_process_uses_it(data):
    with running(data):
        assert is_up(data)
        with running(data):
            pass
        assert is_up(data)
    assert not is_up(data)


def test_the_server_has_pgvector_and_a_role_that_may_only_create_databases(data):
    with running(data):
        assert answer(data, "SHOW max_connections") == "100"
        version = answer(data, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        assert tuple(map(int, version.split(".")[:2])) >= (0, 8)
        rights = (
            "SELECT (rolcreatedb, rolsuper, rolcreaterole)::text FROM pg_roles WHERE rolname = 'chatsite'"
        )
        assert answer(data, rights) == "(t,f,f)"


def test_the_server_listens_on_no_network_and_requires_a_password(data):
    with running(data, connections=130):
        assert answer(data, "SHOW max_connections") == "130"
        assert answer(data, "SHOW listen_addresses") == ""
        parameters = connection_parameters(data) | {"passfile": "/dev/null", "password": "wrong"}
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(**parameters)


def test_a_password_of_another_server_in_the_shell_changes_nothing(data, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with running(data):
        assert is_up(data)
        # Django omits an empty PASSWORD, but passes OPTIONS on to the driver.
        assert django_database(connection_parameters(data))["OPTIONS"]["password"] == ""


def test_secrets_are_readable_only_by_their_owner(data):
    with running(data):
        assert stat.S_IMODE((data / "postgres.pgpass").stat().st_mode) == 0o600
        assert stat.S_IMODE((data / "postgres").stat().st_mode) == 0o700


def test_a_killed_server_starts_again(data):
    cluster = Cluster(data)
    cluster.start()
    os.kill(int((data / "postgres" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
    time.sleep(0.2)
    cluster.stop()
    with running(data):
        assert is_up(data)


def test_a_dead_user_no_longer_counts(data):
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        Cluster(data).start()
        os._exit(0)
    assert is_up(data)
    with running(data):
        pass
    assert not is_up(data)


def test_an_incomplete_cluster_is_created_again():
    folder = temporary_folder()
    (folder / "postgres" / "base").mkdir(parents=True)
    try:
        with running(folder):
            assert is_up(folder)
    finally:
        shutil.rmtree(folder)


def test_a_directory_that_cannot_be_created_is_named():
    with pytest.raises(EmbeddedDatabaseError, match="/proc/nowhere"), running(Path("/proc/nowhere")):
        pass


def test_a_long_path_gets_a_socket_elsewhere(tmp_path):
    deep = tmp_path / ("x" * 120)
    assert len(str(socket_directory(deep))) < SOCKET_PATH_LIMIT
    assert socket_directory(Path("/srv/data")) == Path("/srv/data/postgres")


def test_a_secret_is_written_completely_and_kept(tmp_path):
    assert secret_key(tmp_path) == secret_key(tmp_path)
    write_secret(tmp_path / "other", "text")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_commands_and_settings_agree_on_the_data_directory(monkeypatch):
    monkeypatch.delenv("CHATSITE_DATA_DIR", raising=False)
    assert data_directory() == settings.BASE_DIR / ".data"
