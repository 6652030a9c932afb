"""A reranking server: `POST …/rerank` as offered by Cohere, Jina, vLLM and llama.cpp."""

import asyncio
import json
import logging
import math
from collections.abc import Sequence
from typing import Any

import httpx2
import openai
from django.conf import settings

from chatsite.http.outgoing.model_server import model_server

logger = logging.getLogger(__name__)

SECONDS = 5.0  # a short time limit, because answers do not depend on reranking
MAX_SCORE = 4.0


async def rerank(question: str, passages: Sequence[str]) -> dict[int, float]:
    """The relevance (0 to 4) of passages by index; empty if the server fails."""
    body = {
        "model": settings.RERANK_MODEL,
        "query": question,
        "documents": list(passages),
        "top_n": len(passages),
    }
    try:
        async with asyncio.timeout(SECONDS):
            server = model_server(settings.RERANK_BASE_URL, settings.RERANK_API_KEY, SECONDS)
            data = await server.post("rerank", body)
        return scores(json.loads(data), len(passages))
    except (
        TimeoutError,
        openai.OpenAIError,
        httpx2.InvalidURL,
        ValueError,
        LookupError,
        OverflowError,
        TypeError,
        RecursionError,
    ) as error:
        # Do not log the message of an error, which may contain the URL or the key.
        logger.warning("The reranking server failed: %s", type(error).__name__)
        return {}


def scores(body: Any, count: int) -> dict[int, float]:
    """The scores in a response, converted to 0 to 4.

    Raises ValueError, LookupError, OverflowError or TypeError.
    """
    found: dict[int, float] = {}
    for result in body["results"]:
        place, score = result["index"], float(result["relevance_score"])
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count:
            raise ValueError("an index that was not requested")
        if not math.isfinite(score):
            raise ValueError("a score that is not a number")
        found[place] = score
    if any(not 0 <= score <= 1 for score in found.values()):
        # Map to 0..1, because some servers return raw scores of any size.
        found = {place: 1 / (1 + math.exp(-max(-50.0, min(50.0, score)))) for place, score in found.items()}
    return {place: MAX_SCORE * score for place, score in found.items()}
