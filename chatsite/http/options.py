"""The response to OPTIONS."""

from typing import Any

from rest_framework.metadata import BaseMetadata


class NoMetadata(BaseMetadata):
    """Responds to OPTIONS with `Allow` and no body: the API description has the rest."""

    def determine_metadata(self, request: Any, view: Any) -> None:
        return None
