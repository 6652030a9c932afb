"""The connection to the model's server, and the codes of its errors."""

import re
from dataclasses import dataclass, field

import aiohttp
import httpx2
import openai
from django.conf import settings

from chatsite import metrics
from chatsite.event_loops import PerEventLoop
from chatsite.http.outgoing.circuit_breaker import CircuitBreaker
from chatsite.http.outgoing.model_server import ModelServer, model_server, retry_after_of

from .chat_model import ModelError

COMPLETIONS = "chat/completions"  # path below the base URL
# Members that the site adds to a request for an answer; if a model refuses them, it can answer without them.
OWN = frozenset({"temperature", "stream_options"})
# Members that a caller may set. A refusal is not remembered, because the caller's value may be the reason.
HINTS = ("top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort", "verbosity")
# Members that can be dropped: the site applies stop sequences itself, and max_tokens has a newer name.
OPTIONAL = OWN | {*HINTS, "stop", "max_tokens"}

FAILURES = 5  # failures after which a model gets no requests for a while
WINDOW_SECONDS = 30.0  # time within which these failures must occur
MAX_REST_SECONDS = 60.0  # longest pause, even if the server asks for a longer one
_TOO_LONG = re.compile(r"context[ _](length|size|window)|maximum model length|prompt is too long", re.I)
_NAME = re.compile(r"[a-z_]{3,40}", re.I)  # matches names of errors, but not keys or sentences
_FORMAT = re.compile(r"response_format|json_schema", re.I)
_FILTERED = re.compile(r"content[ _](filter|policy|management)", re.I)


@dataclass(frozen=True, slots=True)
class Connection:
    """The state of a server: request members that it has refused, and each model's breaker."""

    server: ModelServer
    refused: set[str] = field(default_factory=set)
    breakers: dict[str, CircuitBreaker] = field(default_factory=dict)

    def breaker(self, model: str) -> CircuitBreaker:
        """The circuit breaker of one model."""
        if model not in self.breakers:
            self.breakers[model] = CircuitBreaker(
                failures=FAILURES,
                window=WINDOW_SECONDS,
                rest=settings.MODEL_REST_SECONDS,
                max_rest=MAX_REST_SECONDS,
            )
        return self.breakers[model]


class MemberRefused(ModelError):
    """The server refused the optional member `name` of the request."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__("upstream_misconfigured", detail=detail)
        self.name = name


_connections: PerEventLoop[dict[tuple[str, ...], Connection]] = PerEventLoop(dict)


def connection() -> Connection:
    """The running event loop's connection to the configured server and model. Raises ModelError."""
    key = (settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.CHAT_MODEL)
    connections = _connections()
    if key not in connections or connections[key].server.is_closed:
        try:
            server = model_server(*key[:2], settings.ANSWER_CONNECT_SECONDS)
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelError("upstream_misconfigured", detail=type(error).__name__) from None
        connections[key] = Connection(server)
    return connections[key]


@metrics.BREAKERS_OPEN.read_from
def _open_breakers() -> dict[metrics.Labels, float]:
    """The number of open circuit breakers of this process, by model."""
    found: dict[metrics.Labels, float] = {}
    for _, connections in _connections.items():
        for each in list(connections.values()):
            for model, breaker in list(each.breakers.items()):
                found[(model,)] = found.get((model,), 0.0) + breaker.is_open()
    return found


def translated(error: openai.APIError) -> ModelError:
    """The site's error for an error of the server or of the network."""
    detail = describe_error(error)
    if isinstance(error, openai.APITimeoutError):
        connecting = isinstance(error.__cause__, aiohttp.ConnectionTimeoutError)
        return ModelError("upstream_unavailable" if connecting else "upstream_timeout", detail=detail)
    if not isinstance(error, openai.APIStatusError):
        return ModelError("upstream_unavailable", detail=detail)
    status = error.status_code
    if status == 429:
        return ModelError("rate_limited", retry_after_of(error), detail=detail)
    if status >= 500:
        return ModelError("upstream_unavailable", retry_after_of(error), detail=detail)
    if status not in {400, 413, 422}:
        return ModelError("upstream_misconfigured", detail=detail)
    said = f"{error.code} {error.body}"
    if isinstance(error.param, str) and error.param in OPTIONAL:
        return MemberRefused(error.param, detail)
    if error.param == "max_completion_tokens":
        return ModelError("length_refused", detail=detail)
    if str(error.param or "").startswith("response_format") or _FORMAT.search(said):
        return ModelError("format_refused", detail=detail)
    return ModelError(code_of(said) or "upstream_misconfigured", detail=detail)


def code_of(said: str) -> str:
    """The error code for a refusal, recognised by its message, which differs between servers.

    Empty if the message is unknown.
    """
    if _TOO_LONG.search(said):
        return "context_overflow"
    return "content_filter" if _FILTERED.search(said) else ""


def describe_error(error: Exception) -> str:
    """The error for the log, without the server's message, which may contain the key or the prompt."""
    causes = [error, error.__cause__] if error.__cause__ else [error]
    found = ", ".join(type(cause).__name__ for cause in causes)
    if not isinstance(error, openai.APIStatusError):
        return found
    names = [str(name) for name in (error.code, error.type) if name and _NAME.fullmatch(str(name))]
    return ", ".join([f"{found} {error.status_code}", *names])
