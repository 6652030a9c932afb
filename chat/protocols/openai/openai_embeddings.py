"""OpenAI's embeddings, with vectors of the site's own model."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chat.protocols import validators
from chat.protocols.request_body import body_object
from chat.protocols.validators import Reader
from chat.requests import InvalidRequest

from . import openai_members as shared

MAX_TEXTS = 2_048
MAX_CHARACTERS = 32_000  # characters of one text
MAX_TOTAL_CHARACTERS = 100_000  # characters of all texts of a request

KNOWN: Mapping[str, Reader | None] = {
    "input": None,
    "model": validators.require_text,
    "encoding_format": lambda value, member: validators.require_choice(value, member, ("float", "base64")),
    "dimensions": lambda value, member: validators.require_integer(value, member, 1, 100_000),
    "user": shared.a_label,
}


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to embed, and the form of the vectors."""

    texts: Sequence[str]
    dimensions: int | None
    as_base64: bool


def parse(body: Any) -> EmbeddingRequest:
    """The request in a body. Raises InvalidRequest."""
    members = body_object(body)
    found = shared.read_members(members, KNOWN)
    given = members.get("input")
    items = [given] if isinstance(given, str) else validators.require_list(given, "input")
    if not 0 < len(items) <= MAX_TEXTS:
        raise InvalidRequest(f"“input” must hold 1 to {MAX_TEXTS:,} texts.", "input")
    for item in items:
        if not isinstance(item, str):
            raise InvalidRequest(
                "“input” must be text or a list of texts: tokens are not supported.", "input"
            )
        if not 0 < len(validators.require_text(item, "input")) <= MAX_CHARACTERS:
            raise InvalidRequest(f"“input” must hold texts of 1 to {MAX_CHARACTERS:,} characters.", "input")
    if sum(map(len, items)) > MAX_TOTAL_CHARACTERS:
        raise InvalidRequest(
            f"“input” must hold at most {MAX_TOTAL_CHARACTERS:,} characters in all.", "input"
        )
    return EmbeddingRequest(items, found.get("dimensions"), found.get("encoding_format") == "base64")


def answer(vectors: NDArray[np.float32], model: str, *, as_base64: bool) -> bytes:
    """The JSON body of the response; `usage` is 0, because no tokens are counted.

    The vectors are encoded one by one: encoding all of them in one call would hold the GIL for too long.
    """
    data = ", ".join(
        json.dumps(
            {
                "object": "embedding",
                "index": index,
                "embedding": (
                    base64.b64encode(vector.astype("<f4").tobytes()).decode()
                    if as_base64
                    else vector.tolist()
                ),
            }
        )
        for index, vector in enumerate(vectors)
    )
    rest = json.dumps({"model": model, "usage": {"prompt_tokens": 0, "total_tokens": 0}})
    return f'{{"object": "list", "data": [{data}], {rest[1:]}'.encode()
