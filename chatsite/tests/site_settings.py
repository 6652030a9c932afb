"""The settings of the sites that tests start: the product's own, with cheaper hashes and disk writes.

Hashing a password takes 0.4 s of CPU, at every sign-in and three times at the first start with the demo.

The databases skip work that only protects against power failures: tests kill processes, not the machine.

The sites do not load the packages of `telemetry`, which are installed for their own tests and would take a
tenth of the start of each of a site's three processes.
"""

import sys

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chatsite.server.embedded_postgres import cluster
from chatsite.settings import *  # noqa: F403

cluster.CONFIGURATION += "fsync = off\n"
cluster.CONFIGURATION += (
    "synchronous_commit = local\n"  # the same as `on`, except in a test that names a replica
)

for name in ("opentelemetry", "sentry_sdk", "requests"):
    sys.modules[name] = None


class QuickHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration."""

    iterations = 1


PASSWORD_HASHERS = [f"{__name__}.QuickHasher"]
