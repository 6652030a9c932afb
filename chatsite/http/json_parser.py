"""A strict JSON parser."""

from typing import Any

import jiter
from django.utils.translation import gettext
from rest_framework import exceptions, parsers


class StrictJSONParser(parsers.BaseParser):
    """JSON without NaN and infinity, without lone surrogates, and with limited depth."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return jiter.from_json(stream.read(), allow_inf_nan=False)
        except (ValueError, RecursionError) as error:
            raise exceptions.ParseError(_refusal(str(error))) from None


def _refusal(error: str) -> str:
    """The message for an invalid body, with the place from jiter (“… at line 1 column 47”)."""
    line, _, column = error.rpartition(" at line ")[2].partition(" column ")
    if line.isdecimal() and column.isdecimal():
        words = gettext("The body is not valid JSON (line %(line)s, column %(column)s).")
        return words % {"line": line, "column": column}
    return gettext("The body is not valid JSON.")
