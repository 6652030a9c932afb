"""The messages of the Model Context Protocol over Streamable HTTP.

Tools and resources are in mcp_tools.py. The revision of 2026 has no handshake: each request states the
revision and the client's capabilities in `_meta`, and repeats in headers the revision, the method, and the
name of the tool or the URI of the resource. In earlier revisions a client begins with `initialize`. This
server has no sessions in any revision.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from chat.events import ContextReady, Event, Json, Searching, TextDelta, Thinking

from . import validators

CURRENT = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18")  # revisions that begin with `initialize`, newest first
PROGRESS_CHARACTERS = 400  # characters of an answer between two notifications
TOOLS_TTL = 300_000  # milliseconds for which a client may cache results without documents

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # in revisions up to 2025
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{PREFIX}clientCapabilities"
SERVER_KEY = f"{PREFIX}serverInfo"
NAMED = {"tools/call": "name", "resources/read": "uri"}  # the parameter that the header Mcp-Name repeats
ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")
METHODS = frozenset({
    "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
})  # fmt: skip
HANDSHAKE_METHODS = METHODS | {"initialize", "ping"}
CURRENT_METHODS = METHODS | {"server/discover"}
# How long a client may cache a result, in milliseconds. Results about documents must not be cached, because
# rights can change at any time.
CACHED = {
    "server/discover": TOOLS_TTL,
    "tools/list": TOOLS_TTL,
    "resources/list": 0,
    "resources/templates/list": TOOLS_TTL,
    "resources/read": 0,
}
INSTRUCTIONS = (
    "Searches and reads the documents that this account may read. Use `search` to find passages, `fetch` to "
    "read one or its whole document, and `ask` for a written answer with verified citations. Cite by `url`."
)


class McpError(Exception):
    """A request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client.

    `handshake` is true for revisions up to 2025, which begin with `initialize`.
    """

    method: str
    params: Mapping[str, Any]
    call_id: str | int
    handshake: bool

    @property
    def progress_token(self) -> str | int | None:
        """The token under which progress is reported; None if the client requested no progress."""
        meta = self.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return token if _is_id(token) else None

    @property
    def tool(self) -> str:
        return _text_of(self.params, "name")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a tool. Raises InvalidRequest."""
        return validators.require_object(self.params.get("arguments"), "arguments")

    @property
    def uri(self) -> str:
        """The URI of the resource to read."""
        return _text_of(self.params, "uri")

    @property
    def cursor(self) -> str:
        """The position at which a list continues; empty for its beginning."""
        return _text_of(self.params, "cursor", "")


@dataclass(frozen=True, slots=True)
class Site:
    """The server's description of itself."""

    name: str
    version: str

    @property
    def info(self) -> Json:
        return {"name": "chatsite", "title": self.name, "version": self.version}


def registration_refused(_: str, /, *, status: int) -> Json:
    """The error for a client that tries to register for OAuth after its key was refused.

    Many clients show this error instead of the refusal of the key.
    """
    words = (
        "This site registers no clients. Send a valid API key in the header “Authorization: Bearer chs_…”, "
        "or a token of the site's sign-in provider if it has one."
    )
    return {"error": "invalid_request", "error_description": words}


class Refusals:
    """Encodes refusals of requests, with the id of the request if that is known."""

    def __init__(self, call_id: str | int | None = None) -> None:
        self.call_id = call_id

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        number = INTERNAL_ERROR if status >= 500 else INVALID_REQUEST
        return error(self.call_id, McpError(number, message, {"code": code} if code else None))


def read(headers: Mapping[str, str], body: Any) -> Call | None:
    """The request in a body; None for a message that gets no reply. Raises McpError.

    Messages without a reply are notifications and, in revisions with a handshake, responses of the client.
    """
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise McpError(
            INVALID_REQUEST,
            "A message must be one JSON object with “jsonrpc”: “2.0”; batches are not supported.",
        )
    version = headers.get("MCP-Protocol-Version", "").strip()
    handshake = _has_handshake(version, body)
    method, call_id, params = body.get("method"), body.get("id"), body.get("params", {})
    if "id" not in body or (handshake and "method" not in body):
        return None
    if not _is_id(call_id) or not isinstance(method, str):
        raise McpError(
            INVALID_REQUEST, "A request must have a “method”, and an “id” that is text or a whole number."
        )
    if not isinstance(params, dict):
        raise McpError(INVALID_PARAMS, "“params” must be an object.")
    call = Call(method, params, call_id, handshake)
    if not handshake:
        _check_envelope(headers, version, call)
    if method not in (HANDSHAKE_METHODS if handshake else CURRENT_METHODS):
        raise McpError(METHOD_NOT_FOUND, f"This server has no method “{method[:100]}”.")
    return call


def id_of(body: Any) -> str | int | None:
    """The id for the refusal of a message, even of an invalid one; None without a valid id."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if _is_id(found) else None


def is_handshake(headers: Mapping[str, str], body: Any) -> bool:
    """Whether a message, even if invalid, belongs to a revision with a handshake."""
    return isinstance(body, dict) and _has_handshake(headers.get("MCP-Protocol-Version", "").strip(), body)


def _has_handshake(version: str, body: Mapping[str, Any]) -> bool:
    if version:
        return version in HANDSHAKE
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return not (isinstance(meta, dict) and VERSION_KEY in meta)


def _check_envelope(headers: Mapping[str, str], version: str, call: Call) -> None:
    """Check the members and headers of a request of the current revision. Raises McpError."""
    meta = call.params.get("_meta")
    if not isinstance(meta, dict) and version != CURRENT:
        raise _unsupported(version, (CURRENT, *HANDSHAKE))
    if not isinstance(meta, dict):
        raise McpError(INVALID_PARAMS, f"“params._meta” must hold “{VERSION_KEY}” and “{CAPABILITIES_KEY}”.")
    for key, kind in ((VERSION_KEY, str), (CAPABILITIES_KEY, dict)):
        if not isinstance(meta.get(key), kind):
            raise McpError(INVALID_PARAMS, f"“params._meta” must hold “{key}”.")
    if version != meta[VERSION_KEY]:
        raise McpError(
            HEADER_MISMATCH, f"The header MCP-Protocol-Version must equal “{VERSION_KEY}” in “_meta”."
        )
    if headers.get("Mcp-Method", "").strip() != call.method:
        raise McpError(HEADER_MISMATCH, "The header Mcp-Method must equal “method”.")
    if member := NAMED.get(call.method):
        named = call.params.get(member)
        if named is not None and _decoded(headers.get("Mcp-Name", "").strip()) != named:
            raise McpError(HEADER_MISMATCH, f"The header Mcp-Name must equal “params.{member}”.")
    if version != CURRENT:
        raise _unsupported(version, (CURRENT,))


def _unsupported(version: str, supported: tuple[str, ...]) -> McpError:
    words = f"This server speaks the revisions {', '.join((CURRENT, *HANDSHAKE))} of the protocol."
    return McpError(UNSUPPORTED_VERSION, words, {"supported": list(supported), "requested": version})


def _decoded(value: str) -> str | None:
    """The value of a header, which may be encoded in Base64; None if it cannot be decoded."""
    match = ENCODED.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _is_id(value: Any) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _text_of(params: Mapping[str, Any], member: str, default: str | None = None) -> str:
    value = params.get(member, default)
    if not isinstance(value, str) or "\x00" in value:
        raise McpError(INVALID_PARAMS, f"“params.{member}” must be text.")
    return value


# --- Messages to the client ---


def result(call: Call, site: Site, members: Json) -> Json:
    """The response to a request."""
    if not call.handshake:
        members = members | {"resultType": "complete", "_meta": {SERVER_KEY: site.info}}
        if call.method in CACHED:
            members |= {"ttlMs": CACHED[call.method], "cacheScope": "private"}
    return {"jsonrpc": "2.0", "id": call.call_id, "result": members}


def error(call_id: str | int | None, refusal: McpError) -> Json:
    """The response to a request that is refused."""
    described: Json = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        described["data"] = refusal.data
    return {"jsonrpc": "2.0", **({} if call_id is None else {"id": call_id}), "error": described}


def status(refusal: McpError, *, handshake: bool) -> int:
    """The HTTP status of an error.

    In revisions with a handshake, errors of well-formed requests have status 200, except internal errors.
    """
    if refusal.code == INTERNAL_ERROR:
        return 500
    if handshake and refusal.code not in (INVALID_REQUEST, PARSE_ERROR):
        return 200
    return 404 if refusal.code == METHOD_NOT_FOUND else 400


def resource_not_found(call: Call) -> McpError:
    """The same error for resources that do not exist and for those the caller may not read."""
    code = RESOURCE_NOT_FOUND if call.handshake else INVALID_PARAMS
    return McpError(code, "There is no such resource.", {"uri": call.uri})


def initialized(call: Call, site: Site) -> Json:
    """The result of `initialize`.

    It names the client's revision if that is one of HANDSHAKE, otherwise the newest of these.
    """
    wanted = call.params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[0],
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": site.info,
        "instructions": INSTRUCTIONS,
    }


def discovered() -> Json:
    """The result of `server/discover`."""
    return {
        "supportedVersions": [CURRENT],
        "capabilities": {"tools": {}, "resources": {}},
        "instructions": INSTRUCTIONS,
    }


class Progress:
    """Progress notifications for a running answer, with the client's progress token."""

    def __init__(self, token: str | int) -> None:
        self._token = token
        self._number = self._written = self._reported = 0

    def of(self, event: Event) -> Json | None:
        """The notification for an event; None for events without one.

        The numbers of notifications increase.
        """
        match event:
            case Searching(awaited=awaited) if awaited:
                words = f"Waiting for {awaited} document{'' if awaited == 1 else 's'} to be read"
            case Searching(readable):
                words = f"Searching {readable:,} document{'' if readable == 1 else 's'}"
            case ContextReady(sources):
                words = f"Found {len(sources)} passage{'' if len(sources) == 1 else 's'}"
            case Thinking():
                words = "Thinking"
            case TextDelta(text):
                self._written += len(text)
                if self._reported and self._written - self._reported < PROGRESS_CHARACTERS:
                    return None
                self._reported = self._written
                words = f"Writing the answer: {self._written:,} characters"
            case _:
                return None
        self._number += 1
        params = {"progressToken": self._token, "progress": self._number, "message": words}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
