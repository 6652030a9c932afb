"""The settings of the sites that tests start: the product's own, but for what a password's hash costs.

One of Django's takes 0.4 s of CPU, at every sign-in and three times at the first start with the demo.

The sites have the product's packages alone: those of `telemetry` are here for their tests, and would take a
tenth of the start of each of the three processes of a site.
"""

import sys

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chatsite.settings import *  # noqa: F403

for name in ("opentelemetry", "sentry_sdk", "requests"):
    sys.modules[name] = None


class QuickHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration."""

    iterations = 1


PASSWORD_HASHERS = [f"{__name__}.QuickHasher"]
