"""Selects which static files of installed packages are served."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.staticfiles.finders import AppDirectoriesFinder

# The package of the API documentation contains two viewers. Only Swagger UI is used, without its optional
# parts.
UNUSED = ("redoc", "swagger-ui-standalone-preset.*", "swagger-ui-bundle.js.map", "oauth2-redirect.*")


class UsedFilesFinder(AppDirectoriesFinder):
    """Skips files that no page uses.

    Collecting and compressing them would delay the first start.
    """

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[Any]:
        yield from super().list([*(ignore_patterns or ()), *UNUSED])
