"""The error for clients of OpenAI's API whose base URL is wrong: it names the right one."""

import re
from typing import Any

from django.http import HttpRequest

from chat.protocols import OpenAI

# The path of an operation of OpenAI's API below a base URL, which a client may wrongly have set to the site's
# root, to an endpoint, or to the base URL of another product.
OPERATION = re.compile(
    r"(?P<base>(?:/(?:v1|api|openai|deployments/[^/]+|chat/completions)){0,4})"
    r"//?(?:chat/completions|completions|embeddings|models|responses)(?:/|\Z)"
)
BASE = "/v1"


def hint(request: HttpRequest) -> dict[str, Any] | None:
    """The error body for an operation below a base URL other than `/v1`; otherwise None."""
    found = OPERATION.match(request.path)
    if found is None or found["base"] == BASE:
        return None
    site = request.build_absolute_uri(BASE)
    words = f"There is nothing at {request.path[:200]}. The base URL of this site’s API is {site}"
    return OpenAI().error(words, "wrong_base_url", status=404)
