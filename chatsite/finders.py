"""Which static files of installed packages are served."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.staticfiles.finders import AppDirectoriesFinder

# Of the package with the API's pages one viewer of two is used, and it without its further layout.
UNUSED = ("redoc", "swagger-ui-standalone-preset.*", "swagger-ui-bundle.js.map", "oauth2-redirect.*")


class UsedFilesFinder(AppDirectoriesFinder):
    """All but what no page here uses: collecting and compressing it would make the first start slower."""

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[Any]:
        yield from super().list([*(ignore_patterns or ()), *UNUSED])
