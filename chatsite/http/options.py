"""The response to OPTIONS."""

from typing import Any

from rest_framework.metadata import BaseMetadata


class NoMetadata(BaseMetadata):
    """No body, only the methods in `Allow`: the API description says the rest."""

    def determine_metadata(self, request: Any, view: Any) -> None:
        return None
