"""Settings of a web process behind a pooler, for tests."""

import os

from chatsite import environment
from chatsite.settings import DATABASES
from chatsite.tests.site_settings import *  # noqa: F403

OWN = ("pool", "application_name", "connect_timeout", "options")  # the rest is the direct address

DATABASES["default"] |= environment.django_database(environment.database_url("DATABASE_URL")) | {
    "OPTIONS": {name: DATABASES["default"]["OPTIONS"][name] for name in OWN} | {"transaction_pooling": True}
}
assert os.environ["DATABASE_DIRECT_URL"]
