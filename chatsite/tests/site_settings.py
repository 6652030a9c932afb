"""The settings of the sites that tests start: the product's own, but for what a password's hash costs.

One of Django's takes 0.4 s of CPU, at every sign-in and three times at the first start with the demo.
"""

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from chatsite.settings import *  # noqa: F403


class QuickHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration."""

    iterations = 1


PASSWORD_HASHERS = [f"{__name__}.QuickHasher"]
