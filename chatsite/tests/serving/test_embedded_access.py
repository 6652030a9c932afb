"""The embedded database on a machine with other users: folders, lock files, passwords, sockets."""

import os
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from chatsite.server.embedded_postgres import (
    Cluster,
    EmbeddedDatabaseError,
    connection_parameters,
    paths,
)
from chatsite.tests.leftovers import temporary_folder

pytestmark = pytest.mark.server
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="Only root can be several users.")


@pytest.fixture(scope="module")
def cluster():
    folder = temporary_folder()
    server = Cluster(folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_lock_files_and_passwords_are_private_including_those_of_earlier_versions(cluster):
    locks = [cluster.data / name for name in ("postgres.lock", "postgres.users")]
    assert [mode(path) for path in [*locks, paths.password_file(cluster.data)]] == [0o600] * 3
    locks[0].chmod(0o644)
    paths.open_lock(locks[0]).close()
    assert mode(locks[0]) == 0o600


def test_a_lock_file_that_links_to_another_users_file_is_refused(tmp_path):
    (tmp_path / "other").touch()
    (tmp_path / "up.lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        paths.open_lock(tmp_path / "up.lock")


def test_the_superuser_and_the_role_of_the_site_have_passwords_of_their_own(cluster):
    passwords = cluster._passwords()
    assert len(set(passwords.values())) == 2
    parameters = connection_parameters(cluster.data) | {"passfile": "/dev/null"}
    psycopg.connect(**parameters | {"password": passwords["chatsite"]}).close()
    for role, password in (("postgres", passwords["chatsite"]), ("chatsite", ""), ("postgres", "")):
        with pytest.raises(psycopg.OperationalError, match=r"password|authentication"):
            psycopg.connect(**parameters | {"user": role, "password": password})


def test_a_data_directory_with_one_shared_password_is_upgraded_at_the_start(cluster):
    password = cluster._passwords()["postgres"]
    parameters = connection_parameters(cluster.data, role="postgres", database="postgres")
    with psycopg.connect(**parameters, autocommit=True) as session:
        session.execute(f"ALTER ROLE chatsite PASSWORD '{password}'")
    cluster._write_passwords({"postgres": password, "chatsite": password})
    again = Cluster(cluster.data)
    again.start()
    try:
        assert len(set(again._passwords().values())) == 2
        psycopg.connect(**connection_parameters(cluster.data)).close()
        old = {"passfile": "/dev/null", "password": password}
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(**connection_parameters(cluster.data) | old)
    finally:
        again.stop()


@as_root
@pytest.mark.parametrize("account", ["daemon", "nobody"])
def test_another_local_user_cannot_connect_through_the_socket(cluster, account):
    psql = str(cluster._binaries / "psql")  # Debian's psql is a wrapper, which may have no client to call
    command = [psql, "-w", "-h", str(cluster.sockets), "-U", "postgres", "-d", "postgres", "-c", "SELECT 1"]
    done = subprocess.run(command, user=account, cwd="/", capture_output=True, text=True, env={}, check=False)
    assert done.returncode == 2
    assert any(words in done.stderr for words in ("Permission denied", "no password supplied")), done.stderr


def test_the_server_does_not_listen_on_tcp_and_would_refuse_connections(cluster):
    parameters = connection_parameters(cluster.data, role="postgres", database="postgres")
    with psycopg.connect(**parameters) as session:
        assert session.execute("SHOW listen_addresses").fetchone() == ("",)
        rules = session.execute("SELECT type, auth_method FROM pg_hba_file_rules").fetchall()
    assert rules == [("local", "scram-sha-256"), ("host", "reject")]


@as_root
def test_an_inaccessible_parent_folder_is_refused_and_left_unchanged():
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        assert mode(Path(above)) == 0o700
        with pytest.raises(EmbeddedDatabaseError, match=f"may not enter {above}: start"):
            Cluster(Path(above) / "data").start()
        assert mode(Path(above)) == 0o700


def long_folder():
    above = temporary_folder()
    above.chmod(0o711)
    return above, above / ("long-" * 20) / secrets.token_hex(4)


@pytest.mark.parametrize("squat", ["open", "link", "foreign"])
def test_a_socket_folder_of_another_user_is_refused(squat, tmp_path):
    above, folder = long_folder()
    sockets = paths.socket_directory(folder)
    try:
        if squat == "link":
            sockets.symlink_to(tmp_path)
        else:
            sockets.mkdir(mode=0o700)
            if squat == "open":
                sockets.chmod(0o777)
            elif os.geteuid() != 0:
                pytest.skip("Only root can give a folder away.")
            else:
                os.chown(sockets, 1, 1)
        server = Cluster(folder)
        with pytest.raises(EmbeddedDatabaseError, match="belongs to somebody else, or others may access it"):
            server.start()
        server.stop()
    finally:
        sockets.unlink() if sockets.is_symlink() else shutil.rmtree(sockets)
        shutil.rmtree(above)


@as_root
def test_a_server_of_another_user_at_the_socket_path_is_not_used(tmp_path):
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(str(tmp_path / ".s.PGSQL.5432"))
        squatter.listen()
        parameters = connection_parameters(tmp_path) | {"host": str(tmp_path)}
        with pytest.raises(psycopg.OperationalError, match="requirepeer"):
            psycopg.connect(**parameters)
