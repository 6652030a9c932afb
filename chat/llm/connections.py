"""The connection to the model's server, and what its errors mean in the site's own codes."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx2
import openai
from django.conf import settings

from .base import ModelError
from .circuit import Circuit
from .transport import WireTransport

COMPLETIONS = "chat/completions"  # below the base URL
KEYLESS = "no-key"  # local servers want none, the client library insists on one
# Members of every request that some models refuse; the answer is as good without them.
OWN = frozenset({"temperature", "stream_options"})
# Members that a caller may ask for. That a server refuses one holds for that request alone: the reason may be
# the caller's value.
HINTS = ("top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort", "verbosity")
# The site ends an answer at a stop sequence itself, and knows a second name for max_tokens.
OPTIONAL = OWN | {*HINTS, "stop", "max_tokens"}

BODY_LIMIT = 1_000_000  # bytes of anything but a stream of events
_TOO_LONG = re.compile(r"context[ _](length|size|window)|maximum model length|prompt is too long", re.I)
_NAME = re.compile(r"[a-z_]{3,40}", re.I)  # of an error: no key, no sentence
_FORMAT = re.compile(r"response_format|json_schema", re.I)
_FILTERED = re.compile(r"content[ _](filter|policy|management)", re.I)


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and the optional members of a request that this server has refused before."""

    client: openai.AsyncOpenAI
    http: httpx2.AsyncClient  # the client's own
    url: httpx2.URL
    headers: httpx2.Headers
    refused: set[str] = field(default_factory=set)
    circuits: dict[str, Circuit] = field(default_factory=dict)

    async def completion(self, members: Mapping[str, Any], *, stream: bool = False) -> httpx2.Response:
        """What the server answers, unread where it streams. Raises openai.APIError.

        Past the library's call, which looks at every member of every message, and puts address and headers
        together anew each time: that takes several times as long as the rest of a request.
        """
        extensions = {"timeout": self.http.timeout.as_dict()}
        content = json.dumps(members).encode()
        request = httpx2.Request(
            "POST", self.url, headers=self.headers, content=content, extensions=extensions
        )
        try:
            response = await self.http.send(request, stream=stream)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request) from error
        except (httpx2.RequestError, OSError) as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            raise await _status_error(response)
        return response

    def circuit(self, model: str) -> Circuit:
        """Whether that model of the server is left alone just now."""
        return self.circuits.setdefault(model, Circuit(settings.MODEL_REST_SECONDS))


class MemberRefused(ModelError):
    """The server takes the request only without the member `name`."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__("upstream_misconfigured", detail=detail)
        self.name = name


_Key = tuple[str, ...]
_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, Connection]] = WeakKeyDictionary()


def connection() -> Connection:
    """One for each event loop, which owns its sockets, and for each server and model. Raises ModelError."""
    key = (settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.CHAT_MODEL)
    known = _by_loop.setdefault(asyncio.get_running_loop(), {})
    if key not in known or known[key].client.is_closed():
        try:
            known[key] = _connection()
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelError("upstream_misconfigured", detail=type(error).__name__) from None
    return known[key]


def _connection() -> Connection:
    # The deadlines of an answer are the event stream's; these only bound what those do not see.
    timeout = httpx2.Timeout(settings.ANSWER_TOTAL_SECONDS, connect=settings.ANSWER_CONNECT_SECONDS)
    # The way through a proxy is left to the ready-made transport, which is slower and knows it.
    direct = not getproxies()
    http = openai.DefaultAsyncHttpx2Client(
        timeout=timeout,
        follow_redirects=False,
        transport=WireTransport() if direct else None,
        event_hooks={"response": [_bound]},
    )
    client = openai.AsyncOpenAI(
        api_key=settings.OPENAI_API_KEY or KEYLESS,
        base_url=settings.OPENAI_BASE_URL or None,
        max_retries=0,
        timeout=timeout,
        default_headers={"Accept-Encoding": "identity"},  # unpacking would cost more than it saves
        http_client=http,
    )
    told = {**client.default_headers, **client.auth_headers}
    headers = httpx2.Headers({name: value for name, value in told.items() if isinstance(value, str)})
    return Connection(client, http, httpx2.URL(f"{client.base_url}{COMPLETIONS}"), headers)


async def _status_error(response: httpx2.Response) -> openai.APIStatusError:
    """With the error that the body describes, as far as it does."""
    body: object = (await response.aread())[:BODY_LIMIT].decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        body = response.json()
    described = body.get("error", body) if isinstance(body, dict) else body
    return openai.APIStatusError(f"Error code: {response.status_code}", response=response, body=described)


class Bounded(httpx2.AsyncByteStream):
    """A body that ends after BODY_LIMIT, however much more the server sends."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for piece in self._body:
            yield piece
            length += len(piece)
            if length > BODY_LIMIT:
                return

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Errors and short texts are read whole by the client library, which knows no limit."""
    # Nothing is unpacked: a small body could become any size.
    response.headers.pop("content-encoding", None)
    kind = response.headers.get("content-type", "")
    if not (response.is_success and kind.startswith("text/event-stream")):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Bounded(response.stream)


def translated(error: openai.APIError) -> ModelError:
    """The site's own code for what the server or the way to it said."""
    detail = told(error)
    if isinstance(error, openai.APITimeoutError):
        connecting = isinstance(error.__cause__, httpx2.ConnectTimeout)
        return ModelError("upstream_unavailable" if connecting else "upstream_timeout", detail=detail)
    if not isinstance(error, openai.APIStatusError):
        return ModelError("upstream_unavailable", detail=detail)
    status = error.status_code
    if status == 429:
        return ModelError("rate_limited", _retry_after(error), detail=detail)
    if status >= 500:
        return ModelError("upstream_unavailable", _retry_after(error), detail=detail)
    if status in {400, 413, 422}:
        return _of_request(error)
    return ModelError("upstream_misconfigured", detail=detail)


def code_of(said: str) -> str:
    """The code of a refusal by its words, which every server puts differently; empty for others."""
    if _TOO_LONG.search(said):
        return "context_overflow"
    return "content_filter" if _FILTERED.search(said) else ""


def told(error: Exception) -> str:
    """What happened, for the log: never a server's own words, which may repeat the key or the prompt."""
    causes = [error, error.__cause__] if error.__cause__ else [error]
    found = ", ".join(type(cause).__name__ for cause in causes)
    if not isinstance(error, openai.APIStatusError):
        return found
    names = [str(name) for name in (error.code, error.type) if name and _NAME.fullmatch(str(name))]
    return ", ".join([f"{found} {error.status_code}", *names])


def _of_request(error: openai.APIStatusError) -> ModelError:
    said = f"{error.code} {error.body}"
    if isinstance(error.param, str) and error.param in OPTIONAL:
        return MemberRefused(error.param, told(error))
    if error.param == "max_completion_tokens":
        return ModelError("length_refused", detail=told(error))
    if str(error.param or "").startswith("response_format") or _FORMAT.search(said):
        return ModelError("format_refused", detail=told(error))
    return ModelError(code_of(said) or "upstream_misconfigured", detail=told(error))


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds to wait, of the header or until its date; None where nobody told us to wait."""
    told = error.response.headers.get("retry-after", "")
    try:
        seconds = float(told)
    except ValueError:
        return _seconds_until(told)
    return seconds if seconds >= 0 else None


def _seconds_until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
