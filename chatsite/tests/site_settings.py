"""The settings of the sites that tests start: the product's own, with cheaper hashes and disk writes.

A password's hash takes 0.4 s of CPU, at every sign-in and three times at the first start with the demo.

Their databases leave out what only a failure of power would need; processes are killed, the machine is not.

The sites have the product's packages alone: those of `telemetry` are here for their tests, and would take a
tenth of the start of each of the three processes of a site.
"""

import sys

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chatsite.server.embedded_postgres import cluster
from chatsite.settings import *  # noqa: F403

cluster.CONFIGURATION += "fsync = off\n"
cluster.CONFIGURATION += (
    "synchronous_commit = local\n"  # the same as `on`, but for a test that names a replica
)

for name in ("opentelemetry", "sentry_sdk", "requests"):
    sys.modules[name] = None


class QuickHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration."""

    iterations = 1


PASSWORD_HASHERS = [f"{__name__}.QuickHasher"]
