"""A strict JSON parser."""

from typing import Any

import jiter
from django.utils.translation import gettext
from rest_framework import exceptions, parsers


class StrictJSONParser(parsers.BaseParser):
    """JSON without NaN, without lone surrogates, and with limited depth."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return jiter.from_json(stream.read(), allow_inf_nan=False)
        except (ValueError, RecursionError):
            raise exceptions.ParseError(gettext("The body is not valid JSON.")) from None
