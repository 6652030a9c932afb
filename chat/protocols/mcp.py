"""The Model Context Protocol over Streamable HTTP: messages, tools and results.

The revision of 2026 has no handshake: each request names its version and the client's abilities in `_meta`,
and repeats method and name in headers. Earlier ones begin with `initialize`. None of them has sessions here.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from chat.events import ContextReady, Event, Json, RunResult, Searching, TextDelta, Thinking
from chat.requests import SCOPE_CHARACTERS, InvalidRequest
from chat.sources import SourceView

from . import validators
from .framing import COMPACT

CURRENT = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18")  # revisions that begin with `initialize`, newest first
MAX_RESULTS = 50
MAX_LISTED = 100
MAX_QUERY = 4_000  # characters of a search
MAX_CURSOR = 200
PROGRESS_CHARACTERS = 400  # of an answer between two notifications
TOOLS_TTL = 300_000  # milliseconds for which a client may keep the list of tools

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # until 2025
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
# How long a client may cache a result. Results about documents are not cached: rights can change at any time.
CACHED = {
    "server/discover": TOOLS_TTL,
    "tools/list": TOOLS_TTL,
    "resources/list": 0,
    "resources/templates/list": TOOLS_TTL,
    "resources/read": 0,
}
DOCUMENT = "document://"  # begins the URI of a document or passage, before its id
INSTRUCTIONS = (
    "Searches and reads the documents that this account may read. Use `search` to find passages, `fetch` to "
    "read one or its whole document, and `ask` for a written answer with verified citations. Cite by `url`."
)


class McpError(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client. `handshake` distinguishes the revisions until 2025 from later ones."""

    method: str
    params: Mapping[str, Any]
    call_id: str | int
    handshake: bool

    @property
    def progress_token(self) -> str | int | None:
        """The token under which progress is reported; None if none was requested."""
        meta = self.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return token if _is_id(token) else None

    @property
    def tool(self) -> str:
        return _text_of(self.params, "name")

    @property
    def arguments(self) -> dict[str, Any]:
        """Of a tool. Raises InvalidRequest."""
        return validators.an_object(self.params.get("arguments"), "arguments")

    @property
    def uri(self) -> str:
        """Of the resource to read."""
        return _text_of(self.params, "uri")

    @property
    def cursor(self) -> str:
        """The position at which a list continues; empty at its beginning."""
        return _text_of(self.params, "cursor", "")


@dataclass(frozen=True, slots=True)
class Site:
    """The server's description of itself."""

    name: str
    version: str

    @property
    def info(self) -> Json:
        return {"name": "chatsite", "title": self.name, "version": self.version}


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in a list."""

    document_id: str
    name: str
    title: str
    folder: str
    category: str
    pages: int | None
    changed: str  # ISO 8601
    url: str


@dataclass(frozen=True, slots=True)
class Extract:
    """Text of a document, or of one of its passages. `next_cursor` is the id of the next part, if any."""

    entry: Entry
    extract_id: str
    url: str
    text: str
    heading: str = ""
    page: int | None = None
    next_cursor: str = ""


@dataclass(frozen=True, slots=True)
class SearchArguments:
    query: str
    limit: int
    category: str
    scope: str


@dataclass(frozen=True, slots=True)
class ListArguments:
    words: str
    limit: int
    cursor: str


@dataclass(frozen=True, slots=True)
class AskArguments:
    question: str
    conversation: str
    category: str
    scope: str


class Refusals:
    """Encodes refusals before a message has been read, which therefore have no id."""

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        number = INTERNAL_ERROR if status >= 500 else INVALID_REQUEST
        return error(None, McpError(number, message, {"code": code} if code else None))


def read(headers: Mapping[str, str], body: Any) -> Call | None:
    """The request in a body; None for a notification or a response, which need none. Raises McpError."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise McpError(
            INVALID_REQUEST, "A message is one JSON object with “jsonrpc”: “2.0”; batches are not read."
        )
    version = headers.get("MCP-Protocol-Version", "").strip()
    handshake = _has_handshake(version, body)
    method, call_id, params = body.get("method"), body.get("id"), body.get("params", {})
    if "id" not in body or (handshake and "method" not in body):
        return None
    if not _is_id(call_id) or not isinstance(method, str):
        raise McpError(
            INVALID_REQUEST, "A request has a “method” and an “id”, which is text or a whole number."
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
    """The id under which an unreadable message is refused; None where it has no valid one."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if _is_id(found) else None


def is_handshake(headers: Mapping[str, str], body: Any) -> bool:
    """Whether a message, even an invalid one, is of a revision with handshake."""
    return isinstance(body, dict) and _has_handshake(headers.get("MCP-Protocol-Version", "").strip(), body)


def _has_handshake(version: str, body: Mapping[str, Any]) -> bool:
    if version:
        return version in HANDSHAKE
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return not (isinstance(meta, dict) and VERSION_KEY in meta)


def _check_envelope(headers: Mapping[str, str], version: str, call: Call) -> None:
    """Check what each request of the current revision carries. Raises McpError."""
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
    """The value of a header, which is in Base64 where it is not plain text; None if that cannot be read."""
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
    """The answer to a request."""
    if not call.handshake:
        members = members | {"resultType": "complete", "_meta": {SERVER_KEY: site.info}}
        if call.method in CACHED:
            members |= {"ttlMs": CACHED[call.method], "cacheScope": "private"}
    return {"jsonrpc": "2.0", "id": call.call_id, "result": members}


def error(call_id: str | int | None, refusal: McpError) -> Json:
    """The answer to a request that is refused."""
    described: Json = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        described["data"] = refusal.data
    return {"jsonrpc": "2.0", **({} if call_id is None else {"id": call_id}), "error": described}


def status(refusal: McpError, *, handshake: bool) -> int:
    """The HTTP status of an error: until 2025, one in the body of a readable request had none of its own."""
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
    """The result of `initialize`: the client's revision if it is served, else the newest with handshake."""
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


# --- Tools ---


def _object(required: Iterable[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def _integer(description: str, most: int, default: int) -> Json:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": most, "default": default}


CATEGORY = _text("Only documents of this category.")
SCOPE = _text(
    "Where to search: `all`, `own` (what the account added), `folder:` with its path, `category:` with its "
    "name, or `document:` with ids of documents, separated by commas.",
    maxLength=SCOPE_CHARACTERS,
)
HIT = _object(
    ("id", "title", "url"),
    id=_text("Of the passage, for `fetch`."),
    title=_text("Of the document, with the page."),
    url=_text("Where a person can open it."),
    text=_text("The passage."),
    document_id=_text("Of the whole document, for `fetch`."),
    page={"type": ["integer", "null"]},
    score={"type": "number", "description": "From 0 to 1."},
)
LISTED = _object(
    ("id", "title", "url"),
    id=_text("For `fetch`."),
    title=_text("Of the document."),
    url=_text("Where a person can open it."),
    name=_text("Of the file."),
    folder=_text("Where it is kept."),
    category=_text("Empty if it has none."),
    pages={"type": ["integer", "null"]},
    changed=_text("When it was last changed (ISO 8601)."),
)
CITED = _object(
    ("id", "title", "url"),
    id=_text("Of the passage, for `fetch`."),
    title=_text("Of the document, with the page."),
    url=_text("Where a person can open it."),
    label=_text("By which the answer cites it, in brackets."),
    cited={"type": "boolean", "description": "Whether the answer cites it."},
    text=_text("The passage."),
)
READS = {"readOnlyHint": True, "openWorldHint": False}
WRITES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
TOOLS: Mapping[str, Json] = {
    "search": {
        "name": "search",
        "title": "Search documents",
        "description": "Find the passages of the documents that fit a query best, best first.",
        "inputSchema": _object(
            ("query",),
            query=_text("Words or a question.", minLength=1, maxLength=MAX_QUERY),
            limit=_integer("How many passages.", MAX_RESULTS, 10),
            category=CATEGORY,
            scope=SCOPE,
        ),
        "outputSchema": _object(("results",), results={"type": "array", "items": HIT}),
        "annotations": READS,
    },
    "fetch": {
        "name": "fetch",
        "title": "Read a document",
        "description": "Read a passage or a whole document by its id. A long document comes in parts: "
        "`metadata.next` is the id of the part that follows.",
        "inputSchema": _object(("id",), id=_text("As `search` or `list_sources` gave it.")),
        "outputSchema": _object(
            ("id", "title", "text", "url"),
            id=_text("Of what was read."),
            title=_text("Of the document."),
            text=_text("What it says."),
            url=_text("Where a person can open it."),
            metadata={"type": "object"},
        ),
        "annotations": READS,
    },
    "list_sources": {
        "name": "list_sources",
        "title": "List documents",
        "description": "List the documents that can be searched, newest first.",
        "inputSchema": _object(
            (),
            query=_text("Only documents with these words in title, name or folder.", maxLength=MAX_CURSOR),
            limit=_integer("How many.", MAX_LISTED, 50),
            cursor=_text("`next_cursor` of the page before."),
        ),
        "outputSchema": _object(
            ("documents",),
            documents={"type": "array", "items": LISTED},
            next_cursor=_text("Where the list goes on; missing at its end."),
        ),
        "annotations": READS,
    },
    "ask": {
        "name": "ask",
        "title": "Ask a question",
        "description": "Get a written answer to a question, from the documents alone, with verified "
        "citations. It takes seconds; question and answer are kept in the account's history.",
        "inputSchema": _object(
            ("question",),
            question=_text("In any language.", minLength=1),
            conversation_id=_text("Of an earlier answer, to ask on; without `scope` in the same documents."),
            category=CATEGORY,
            scope=SCOPE,
        ),
        "outputSchema": _object(
            ("answer", "conversation_id", "sources"),
            answer=_text("In Markdown; citations are labels in brackets."),
            conversation_id=_text("To ask on."),
            sources={"type": "array", "items": CITED},
            followups={"type": "array", "items": {"type": "string"}},
        ),
        "annotations": WRITES,
    },
}


def tools(allowed: Iterable[str]) -> Json:
    """The result of `tools/list`, of the tools that the caller may use."""
    names = set(allowed)
    return {"tools": [tool for name, tool in TOOLS.items() if name in names]}


def search_arguments(members: Mapping[str, Any]) -> SearchArguments:
    """Raises InvalidRequest."""
    return SearchArguments(
        _wanted(members, "query", MAX_QUERY),
        validators.a_whole_number(members.get("limit", 10), "limit", 1, MAX_RESULTS),
        _optional(members, "category"),
        _scope(members),
    )


def fetch_arguments(members: Mapping[str, Any]) -> str:
    """The id to fetch. Raises InvalidRequest."""
    return _wanted(members, "id", MAX_CURSOR)


def list_arguments(members: Mapping[str, Any]) -> ListArguments:
    """Raises InvalidRequest."""
    return ListArguments(
        _optional(members, "query"),
        validators.a_whole_number(members.get("limit", 50), "limit", 1, MAX_LISTED),
        _optional(members, "cursor"),
    )


def ask_arguments(members: Mapping[str, Any]) -> AskArguments:
    """Raises InvalidRequest. The length of the question is checked where it is stored."""
    return AskArguments(
        _wanted(members, "question"),
        _optional(members, "conversation_id"),
        _optional(members, "category"),
        _scope(members),
    )


def _wanted(members: Mapping[str, Any], member: str, most: int | None = None) -> str:
    if member not in members:
        raise InvalidRequest(f"“{member}” is missing.", member)
    value = validators.a_text(members[member], member)
    if not value.strip():
        raise InvalidRequest(f"“{member}” must not be empty.", member)
    if most is not None and len(value) > most:
        raise InvalidRequest(f"“{member}” is longer than {most:,} characters.", member)
    return value


def _optional(members: Mapping[str, Any], member: str) -> str:
    value = members.get(member)
    return "" if value is None else validators.a_text(value, member)[:MAX_CURSOR]


def _scope(members: Mapping[str, Any]) -> str:
    value = members.get("scope")
    return "" if value in (None, "") else validators.a_scope(value, "scope")


# --- Results of tools ---


def tool_result(structured: Json) -> Json:
    """The result as an object, and the same as JSON text for clients that read text alone."""
    text = COMPACT.encode(structured)
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


def tool_failure(words: str) -> Json:
    """An error as a result, for the model that called the tool."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def hits(found: Iterable[tuple[SourceView, str]]) -> Json:
    """Passages, each with its URL, as the result of `search`."""
    return tool_result({"results": [_hit(source, url) for source, url in found]})


def _hit(source: SourceView, url: str) -> Json:
    return _link(source, url) | {
        "text": source.content,
        "document_id": source.document_id,
        "page": source.page,
        "score": round(source.score, 4),
    }


def _link(source: SourceView, url: str) -> Json:
    title = source.title or source.sourcefile
    return {
        "id": f"{source.document_id}/{source.passage_id}",
        "title": f"{title}, page {source.page}" if source.page else title,
        "url": url,
    }


def listed(entries: Iterable[Entry], cursor: str) -> Json:
    """The result of `list_sources`."""
    documents = [
        {
            "id": entry.document_id,
            "title": entry.title or entry.name,
            "url": entry.url,
            "name": entry.name,
            "folder": entry.folder,
            "category": entry.category,
            "pages": entry.pages,
            "changed": entry.changed,
        }
        for entry in entries
    ]
    return tool_result({"documents": documents} | ({"next_cursor": cursor} if cursor else {}))


def fetched(extract: Extract) -> Json:
    """The result of `fetch`."""
    entry = extract.entry
    metadata = {
        "document_id": entry.document_id,
        "name": entry.name,
        "folder": entry.folder,
        "category": entry.category,
        "pages": entry.pages,
        "changed": entry.changed,
        "heading": extract.heading,
        "page": extract.page,
    }
    return tool_result({
        "id": extract.extract_id,
        "title": entry.title or entry.name,
        "text": extract.text,
        "url": extract.url,
        "metadata": metadata | ({"next": extract.next_cursor} if extract.next_cursor else {}),
    })  # fmt: skip


def answered(result: RunResult, urls: Mapping[str, str]) -> Json:
    """The result of `ask`; `urls` has an absolute URL for the address of each source."""
    cited = {label for message in result.messages if message.done for label in message.done.citations}
    given = {source.passage_id: source for source in result.sources}
    sources = [
        _link(source, urls[source.address])
        | {"label": source.label, "cited": source.label in cited, "text": source.content}
        for source in given.values()
    ]
    return tool_result({
        "answer": result.text,
        "conversation_id": result.started.conversation_id if result.started else "",
        "sources": sources,
        "followups": list(result.followups),
    })  # fmt: skip


# --- Resources ---


def resources(entries: Iterable[Entry], cursor: str) -> Json:
    """The result of `resources/list`."""
    items = [
        {
            "uri": f"{DOCUMENT}{entry.document_id}",
            "name": entry.name,
            "title": entry.title or entry.name,
            "description": " · ".join(part for part in (entry.folder, entry.category) if part),
            "mimeType": "text/plain",
            "annotations": {"lastModified": entry.changed},
        }
        for entry in entries
    ]
    return {"resources": items} | ({"nextCursor": cursor} if cursor else {})


def templates() -> Json:
    """The result of `resources/templates/list`."""
    return {
        "resourceTemplates": [
            {
                "uriTemplate": f"{DOCUMENT}{{document}}",
                "name": "document",
                "title": "A document",
                "description": "The text of a document, by the id that `list_sources` gives.",
                "mimeType": "text/plain",
            },
            {
                "uriTemplate": f"{DOCUMENT}{{document}}/{{passage}}",
                "name": "passage",
                "title": "A passage",
                "description": "A passage of a document, by the id that `search` gives.",
                "mimeType": "text/plain",
            },
        ]
    }


def resource(uri: str, extract: Extract) -> Json:
    """The result of `resources/read`; a long document names the URI of what follows in `_meta`."""
    content: Json = {"uri": uri, "mimeType": "text/plain", "text": extract.text}
    if extract.next_cursor:
        content["_meta"] = {"next": f"{DOCUMENT}{extract.next_cursor}"}
    return {"contents": [content]}


class Progress:
    """Progress notifications of an answer that is being written, with the client's progress token."""

    def __init__(self, token: str | int) -> None:
        self._token = token
        self._number = self._written = self._told = 0

    def of(self, event: Event) -> Json | None:
        """The notification for an event; None for events without one. Its numbers only increase."""
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
                if self._told and self._written - self._told < PROGRESS_CHARACTERS:
                    return None
                self._told = self._written
                words = f"Writing the answer: {self._written:,} characters"
            case _:
                return None
        self._number += 1
        params = {"progressToken": self._token, "progress": self._number, "message": words}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
