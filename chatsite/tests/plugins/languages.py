"""Pytest plugin: each test begins in the site's language and time zone, whatever earlier requests set."""

from collections.abc import Iterator

import pytest
from django.utils import timezone, translation


@pytest.fixture(autouse=True)
def neutral_language() -> Iterator[None]:
    """Undo what the requests of Django's test client leave in its thread."""
    yield
    translation.deactivate()
    timezone.deactivate()
