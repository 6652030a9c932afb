"""The HTTP client for OpenAI-compatible servers: chat completions, embeddings and reranking."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import aiohttp
import httpx2
import openai

from chatsite.dependency_internals import aiohttp_connection
from chatsite.event_loops import PerEventLoop, close_at_end

from .retry_after import retry_after_seconds

OPENAI_BASE_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "no-key"  # local servers need no key, but the client library requires one
BODY_LIMIT = 1_000_000  # bytes of any response but an event stream
MAX_CONNECTIONS = 10_000  # the site limits its runs itself
KEEP_ALIVE_SECONDS = 4.0  # many servers close idle connections after five
# Exceptions of reading a response: the transport passes on some of aiohttp's.
TRANSPORT_ERRORS = (httpx2.HTTPError, aiohttp.ClientError)
CLOSED = "connection_closed"  # our own extension of a response


class ModelServer:
    """A client of one server: keeps connections alive, follows no redirects, retries nothing.

    Raises InvalidURL or ValueError for an unusable URL or key.
    """

    def __init__(self, base_url: str, api_key: str, connect_seconds: float) -> None:
        # Callers set a deadline for the whole request; a read time-out would cost a timer for each token.
        timeout = httpx2.Timeout(None, connect=connect_seconds)
        self._http = openai.DefaultAioHttpClient(
            timeout=timeout,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_SECONDS),
        )
        client = openai.AsyncOpenAI(
            api_key=api_key or PLACEHOLDER_KEY,
            base_url=base_url or OPENAI_BASE_URL,
            max_retries=0,
            timeout=timeout,
            # No compression: it would cost more than it saves, and a small body could expand to any size.
            default_headers={"Accept-Encoding": "identity"},
            http_client=self._http,
        )
        headers = {**client.default_headers, **client.auth_headers}
        self._headers = httpx2.Headers(
            {name: value for name, value in headers.items() if isinstance(value, str)}
        )
        self._base_url = client.base_url
        self._urls: dict[str, httpx2.URL] = {}
        self._extensions = {"timeout": timeout.as_dict()}

    @property
    def is_closed(self) -> bool:
        return self._http.is_closed

    async def close(self) -> None:
        await self._http.aclose()

    async def stream(self, path: str, members: Mapping[str, Any]) -> httpx2.Response:
        """The unread response to a POST, which the caller closes. Raises openai.APIError.

        The library's own methods validate every member of every message and rebuild URL and headers each
        time, which takes several times as long as the rest of a request.
        """
        request = httpx2.Request(
            "POST",
            self._url(path),
            headers=self._headers,
            content=json.dumps(members).encode(),
            extensions=self._extensions,
        )
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.TimeoutException as error:
            # The transport also reports refused and broken connections as time-outs.
            if isinstance(error.__cause__, TimeoutError):
                raise openai.APITimeoutError(request) from error
            raise openai.APIConnectionError(request=request) from error
        except (*TRANSPORT_ERRORS, OSError) as error:
            raise openai.APIConnectionError(request=request) from error
        response.headers.pop("content-encoding", None)
        response.extensions[CLOSED] = _closed(response)
        if not response.is_success:
            raise await _status_error(response)
        return response

    def _url(self, path: str) -> httpx2.URL:
        """Parsed once: that takes longer than all else about a request here."""
        if path not in self._urls:
            self._urls[path] = httpx2.URL(f"{self._base_url}{path}")
        return self._urls[path]

    async def post(self, path: str, members: Mapping[str, Any], limit: int = BODY_LIMIT) -> bytes:
        """The response body, truncated to `limit` bytes. Raises openai.APIError."""
        response = await self.stream(path, members)
        try:
            return await _body(response, limit)
        except TRANSPORT_ERRORS as error:
            raise openai.APIConnectionError(request=response.request) from error


async def pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. Raises one of TRANSPORT_ERRORS if it breaks off."""
    async with aclosing(response.aiter_raw()) as received:
        async for piece in received:
            yield piece
    closed: asyncio.Future[None] | None = response.extensions.get(CLOSED)
    if closed is not None and closed.done() and not closed.cancelled() and closed.exception():
        raise httpx2.ReadError("the connection was reset")


def _closed(response: httpx2.Response) -> asyncio.Future[None] | None:
    """How the connection ended, for a body that only the end of the connection delimits.

    aiohttp takes any end of the connection, even a reset, for the regular end of such a body; it detects
    truncation itself for a body with a length or in chunks. Read before the body, because the response
    releases its connection with the last byte.
    """
    if "content-length" in response.headers or "transfer-encoding" in response.headers:
        return None
    connection = aiohttp_connection(response.stream)
    if connection is None or connection.protocol is None:
        return None
    closed: asyncio.Future[None] | None = connection.protocol.closed
    if closed is not None:
        # The exception is retrieved, so that asyncio does not log it as never retrieved.
        closed.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return closed


async def _status_error(response: httpx2.Response) -> openai.APIStatusError:
    """The library's error for a status, with the details of the body."""
    body: object = {}
    try:
        data = await _body(response, BODY_LIMIT)
        body = data.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            body = json.loads(data)
    except TRANSPORT_ERRORS as error:
        raise openai.APIConnectionError(request=response.request) from error
    described = body.get("error", body) if isinstance(body, dict) else body
    return openai.APIStatusError(f"Error code: {response.status_code}", response=response, body=described)


async def _body(response: httpx2.Response, limit: int) -> bytes:
    """The body up to `limit` bytes, however long it is. Closes the response."""
    data = bytearray()
    try:
        async with aclosing(pieces(response)) as received:
            async for piece in received:
                data += piece
                if len(data) > limit:
                    break
    finally:
        await response.aclose()
    return bytes(data[:limit])


def retry_after_of(error: openai.APIStatusError) -> float | None:
    """Seconds after which the server accepts requests again, by its Retry-After."""
    return retry_after_seconds(error.response.headers.get("retry-after", ""))


_servers: PerEventLoop[dict[tuple[str, str, float], ModelServer]] = PerEventLoop(dict)


def model_server(base_url: str, api_key: str, connect_seconds: float) -> ModelServer:
    """The client of a server for the running event loop, which owns its connections."""
    servers = _servers()
    key = (base_url, api_key, connect_seconds)
    if key not in servers or servers[key].is_closed:
        servers[key] = ModelServer(*key)
        close_at_end(servers[key].close)
    return servers[key]
