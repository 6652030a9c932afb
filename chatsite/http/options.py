"""The response to OPTIONS."""

from typing import Any

from rest_framework.metadata import BaseMetadata


class NoMetadata(BaseMetadata):
    """Responds to OPTIONS with `Allow` and no body; everything else is in the API description."""

    def determine_metadata(self, request: Any, view: Any) -> None:
        return None
