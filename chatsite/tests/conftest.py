"""Fixtures for tests of the whole site."""

import shutil
import subprocess

import pytest

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.faults import FaultSite, Upstream, cluster
from chatsite.tests.long_answer import add_long_answer
from chatsite.tests.server import Site, prepared, temporary_folder


@pytest.fixture(scope="session")
def slow_site():
    """A site with the sample documents, whose answers take a few seconds.

    The answer to the employee's LONG_QUESTION takes much longer.
    """
    folder = temporary_folder()
    try:
        with Site(
            prepared(folder), CHATSITE_QUOTING_WORDS_PER_SECOND="18", CHATSITE_LEASE_SECONDS="2"
        ) as site:
            add_long_answer(site, site.sign_in("employee"))
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def fault_site():
    """A site of two web processes with a model's server, and a PostgreSQL that tests stop and start.

    Its files are on a disk of 2 MB if the tests may mount one (`small_disk`).
    """
    folder, above = temporary_folder(), temporary_folder()
    disk = above / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "chatsite-test", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        with Upstream() as upstream, cluster() as database:
            parameters = connection_parameters(database.data)
            values = {"web_workers": 2, "CHATSITE_MEDIA_ROOT": str(disk), "TMPDIR": str(disk)}
            with FaultSite(folder, upstream, parameters, **values) as site:
                site.cluster, site.small_disk = database, disk if mounted else None
                yield site
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(disk)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(above, ignore_errors=True)
