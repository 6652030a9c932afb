"""Fixtures for tests of the whole site."""

import shutil
import time

import psycopg
import pytest

from chatsite.tests.server import Site, reading_parameters, temporary_folder

UNREAD = "SELECT count(*) FROM ingestion_document WHERE status NOT IN ('ready', 'failed')"


def wait_for_documents(site, seconds=90):
    """Until every document of the site was read."""
    deadline = time.monotonic() + seconds
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while connection.execute(UNREAD).fetchone() != (0,):
            assert time.monotonic() < deadline, "The sample documents were not read."
            time.sleep(0.2)


@pytest.fixture(scope="session")
def slow_site():
    """A site with the sample documents read, whose answers take a few seconds to be written."""
    folder = temporary_folder()
    try:
        with Site(folder, CHATSITE_QUOTING_WORDS_PER_SECOND="18", CHATSITE_LEASE_SECONDS="2") as site:
            wait_for_documents(site)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)
