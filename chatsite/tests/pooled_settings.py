"""The settings of a web process behind a pooler, for tests, which act for the site."""

import os

from chatsite import environment
from chatsite.settings import *  # noqa: F403
from chatsite.settings import DATABASES

DATABASES["default"] |= environment.django_database(environment.database_url("DATABASE_URL")) | {
    "OPTIONS": DATABASES["default"]["OPTIONS"] | {"transaction_pooling": True}
}
for name in ("passfile", "password"):
    DATABASES["default"]["OPTIONS"].pop(name, None)
assert os.environ["DATABASE_DIRECT_URL"]
