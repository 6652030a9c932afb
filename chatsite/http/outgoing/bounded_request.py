"""Requests to servers in the settings: no redirects, one deadline, and only small responses."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx2

from chatsite.http.loopback import is_loopback

MAX_BYTES = 1_000_000


class ResponseTooLarge(ValueError):
    """The response has more than MAX_BYTES."""


class ResponseEncoded(ValueError):
    """The body has a content coding, although none was accepted.

    It is not decoded: a few kilobytes in nested codings take minutes, without reaching MAX_BYTES.
    """


def bounded_request(method: str, url: str, seconds: float, **arguments: Any) -> httpx2.Response:
    """Send a request and read the whole response. Must not be called on an event loop.

    Raises TimeoutError, httpx2.HTTPError, httpx2.InvalidURL or ValueError.
    """
    return asyncio.run(_fetched(method, url, seconds, arguments))


async def _fetched(method: str, url: str, seconds: float, arguments: dict[str, Any]) -> httpx2.Response:
    """The response within one deadline in total.

    Time limits for single reads would not be enough: a server that sends byte by byte could occupy the
    calling thread for hours.
    """
    # No proxy for a local server: the proxy would look for it on the proxy's machine, and receive the key.
    local = is_loopback(urlsplit(url).hostname or "")
    async with (
        asyncio.timeout(seconds),
        httpx2.AsyncClient(
            timeout=seconds,
            follow_redirects=False,
            trust_env=not local,
            headers={"Accept-Encoding": "identity"},
        ) as client,
        client.stream(method, url, **arguments) as response,
    ):
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
            raise ResponseEncoded("The response is compressed, although this was not accepted.")
        body = b""
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MAX_BYTES:
                raise ResponseTooLarge("The response is too large.")
    return httpx2.Response(response.status_code, content=body)
