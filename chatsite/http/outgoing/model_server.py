"""The HTTP client for OpenAI-compatible servers: chat completions, embeddings and reranking."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import openai

from chatsite.event_loops import PerEventLoop, close_at_end
from chatsite.http.loopback import is_loopback

from .retry_after import retry_after_seconds

OPENAI_BASE_URL = "https://api.openai.com/v1"
PLACEHOLDER_KEY = "no-key"  # local servers need no key, but the client library requires one
BODY_LIMIT = 1_000_000  # default limit for the bytes of a response that is no event stream
MAX_CONNECTIONS = 10_000  # practically no limit, because the site limits the number of its runs
KEEP_ALIVE_SECONDS = 4.0  # many servers close idle connections after five seconds
TRANSPORT_ERRORS = (aiohttp.ClientError,)  # raised while a request is sent or a response is read


class ModelServer:
    """A client of one server: keeps connections alive, follows no redirects, retries nothing.

    Address, headers and errors are those of the `openai` library, but requests are made with aiohttp
    directly, because the library's own layers would make more than half of a request's function calls.

    Must be created on the event loop that it serves. Raises InvalidURL or ValueError for an unusable URL or
    key.
    """

    def __init__(self, base_url: str, api_key: str, connect_seconds: float) -> None:
        client = openai.AsyncOpenAI(
            api_key=api_key or PLACEHOLDER_KEY,
            base_url=base_url or OPENAI_BASE_URL,
            # No compression: it would cost more than it saves, and a small body could expand to any size.
            default_headers={"Accept-Encoding": "identity"},
        )
        headers = {**client.default_headers, **client.auth_headers}
        checked = httpx2.Headers({name: value for name, value in headers.items() if isinstance(value, str)})
        self._base_url = client.base_url
        self._urls: dict[str, str] = {}
        self._proxy = _proxy(self._base_url)
        connector = aiohttp.TCPConnector(
            limit=MAX_CONNECTIONS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ssl=httpx2.create_ssl_context() if self._base_url.scheme == "https" else True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=dict(checked),
            # No read time-out: it would cost a timer for each token, and callers limit the whole request.
            timeout=aiohttp.ClientTimeout(sock_connect=connect_seconds),
            auto_decompress=False,
        )

    @property
    def is_closed(self) -> bool:
        return self._session.closed

    async def close(self) -> None:
        await self._session.close()

    async def stream(self, path: str, members: Mapping[str, Any]) -> aiohttp.ClientResponse:
        """The response to a POST, before its body is read.

        The caller must release it. Raises openai.APIError.
        """
        if path not in self._urls:
            self._urls[path] = str(httpx2.URL(f"{self._base_url}{path}"))  # normalised as in the library
        url = self._urls[path]
        try:
            response = await self._session.post(
                url, data=json.dumps(members).encode(), allow_redirects=False, proxy=self._proxy
            )
        except aiohttp.ServerTimeoutError as error:
            raise openai.APITimeoutError(_request(url)) from error
        except (*TRANSPORT_ERRORS, OSError) as error:
            raise openai.APIConnectionError(request=_request(url)) from error
        if not 200 <= response.status < 300:
            raise await _status_error(response)
        return response

    async def post(self, path: str, members: Mapping[str, Any], limit: int = BODY_LIMIT) -> bytes:
        """The response body, truncated to `limit` bytes. Raises openai.APIError."""
        response = await self.stream(path, members)
        try:
            return await _body(response, limit)
        except TRANSPORT_ERRORS as error:
            raise openai.APIConnectionError(request=_request(str(response.url))) from error


def _proxy(url: httpx2.URL) -> str | None:
    """The proxy for this address, from the usual environment variables; looked up once.

    None for a loopback address: a proxy would look for the server on the proxy's own machine, and would
    receive the key and the texts.
    """
    if is_loopback(url.host):
        return None
    proxies = getproxies()
    return None if proxy_bypass(url.host) else proxies.get(url.scheme) or proxies.get("all")


def _request(url: str) -> httpx2.Request:
    """The request object that the library's errors contain."""
    return httpx2.Request("POST", url)


async def pieces(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. Raises one of TRANSPORT_ERRORS if it breaks off."""
    closed = _closed(response)
    while piece := await response.content.readany():
        yield piece
    if closed is not None and closed.done() and not closed.cancelled() and closed.exception():
        raise aiohttp.ClientPayloadError("the connection was reset")


def _closed(response: aiohttp.ClientResponse) -> asyncio.Future[None] | None:
    """A future for the connection's end, if nothing else ends the body; otherwise None.

    aiohttp treats any end of the connection, even a reset, as the regular end of such a body. (In a body with
    a length or chunks, aiohttp detects truncation itself.) Call this before the body is read, because the
    response releases its connection with the last byte.
    """
    if "content-length" in response.headers or "transfer-encoding" in response.headers:
        return None
    connection = response.connection
    if connection is None or connection.protocol is None:
        return None
    closed: asyncio.Future[None] | None = connection.protocol.closed
    if closed is not None:
        # Retrieve the exception; otherwise asyncio logs that it was never retrieved.
        closed.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return closed


async def _status_error(response: aiohttp.ClientResponse) -> openai.APIStatusError:
    """The library's error for a response with an error status, with details from the body."""
    body: object = {}
    request = _request(str(response.url))
    try:
        data = await _body(response, BODY_LIMIT)
        body = data.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            body = json.loads(data)
    except TRANSPORT_ERRORS as error:
        raise openai.APIConnectionError(request=request) from error
    described = body.get("error", body) if isinstance(body, dict) else body
    answered = httpx2.Response(response.status, headers=list(response.headers.items()), request=request)
    return openai.APIStatusError(f"Error code: {response.status}", response=answered, body=described)


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The first `limit` bytes of the body. Releases the response."""
    data = bytearray()
    try:
        async with aclosing(pieces(response)) as received:
            async for piece in received:
                data += piece
                if len(data) > limit:
                    break
    finally:
        response.release()
    return bytes(data[:limit])


def retry_after_of(error: openai.APIStatusError) -> float | None:
    """Seconds after which the server accepts requests again, from its Retry-After header."""
    return retry_after_seconds(error.response.headers.get("retry-after", ""))


_servers: PerEventLoop[dict[tuple[str, str, float], ModelServer]] = PerEventLoop(dict)


def model_server(base_url: str, api_key: str, connect_seconds: float) -> ModelServer:
    """The running event loop's client of a server; the connections belong to that loop."""
    servers = _servers()
    key = (base_url, api_key, connect_seconds)
    if key not in servers or servers[key].is_closed:
        servers[key] = ModelServer(*key)
        close_at_end(servers[key].close)
    return servers[key]
