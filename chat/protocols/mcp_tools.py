"""The tools and resources of the MCP server: their descriptions, arguments and results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chat.events import Json, RunResult
from chat.requests import SCOPE_CHARACTERS, InvalidRequest
from chat.sources import SourceView

from . import validators
from .answer_context import verification
from .framing import COMPACT

MAX_RESULTS = 50
MAX_LISTED = 100
MAX_QUERY = 4_000  # characters of a search query
MAX_CURSOR = 200
DOCUMENT = "document://"  # prefix of the URI of a document or passage, followed by its id


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
    """Text of a document, or of one of its passages.

    `next_cursor` is the id of the next part, if any.
    """

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
    id=_text("The id of the passage, for `fetch`."),
    title=_text("The title of the document, with the page."),
    url=_text("The URL at which a person can open it."),
    text=_text("The passage."),
    document_id=_text("The id of the whole document, for `fetch`."),
    page={"type": ["integer", "null"]},
    score={"type": "number", "description": "From 0 to 1."},
)
LISTED = _object(
    ("id", "title", "url"),
    id=_text("For `fetch`."),
    title=_text("The title of the document."),
    url=_text("The URL at which a person can open it."),
    name=_text("The name of the file."),
    folder=_text("The folder of the document."),
    category=_text("The category; empty if there is none."),
    pages={"type": ["integer", "null"]},
    changed=_text("When it was last changed (ISO 8601)."),
)
CITED = _object(
    ("id", "title", "url"),
    id=_text("The id of the passage, for `fetch`."),
    title=_text("The title of the document, with the page."),
    url=_text("The URL at which a person can open it."),
    label=_text("The label by which the answer cites it, in brackets."),
    cited={"type": "boolean", "description": "Whether the answer cites it."},
    text=_text("The passage."),
)
STATEMENT = _object(
    ("start", "end", "citations", "verdict"),
    start={"type": "integer", "description": "First character of the statement in `answer`, from 0."},
    end={"type": "integer", "description": "The position after its last character."},
    citations={"type": "array", "items": {"type": "string"}, "description": "The labels that it cites."},
    verdict=_text(
        "Whether the cited sources contain the statement.",
        enum=["quoted", "supported", "not_found", "uncited"],
    ),
    by_model={"type": "boolean", "description": "Whether only the language model has confirmed it."},
    unclear={
        "type": "boolean",
        "description": "Whether nothing disagrees, but the wording differs too much to tell.",
    },
)
# The values of history.tally.Grade, which this module may not import.
GRADES = ("given", "several", "likely", "closest", "none")
READS = {"readOnlyHint": True, "openWorldHint": False}
WRITES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
TOOLS: Mapping[str, Json] = {
    "search": {
        "name": "search",
        "title": "Search documents",
        "description": "Find the passages of the documents that best fit a query, best first.",
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
        "inputSchema": _object(("id",), id=_text("An id from `search` or `list_sources`.")),
        "outputSchema": _object(
            ("id", "title", "text", "url"),
            id=_text("The id of the passage or document."),
            title=_text("The title of the document."),
            text=_text("The text of the passage or document."),
            url=_text("The URL at which a person can open it."),
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
            cursor=_text("The `next_cursor` of the previous page."),
        ),
        "outputSchema": _object(
            ("documents",),
            documents={"type": "array", "items": LISTED},
            next_cursor=_text("The cursor of the next page; missing on the last page."),
        ),
        "annotations": READS,
    },
    "ask": {
        "name": "ask",
        "title": "Ask a question",
        "description": "Get a written answer to a question, only from the documents, with verified "
        "citations. This takes seconds; the question and the answer are stored in the "
        "account's history.",
        "inputSchema": _object(
            ("question",),
            question=_text("In any language.", minLength=1),
            conversation_id=_text(
                "The conversation of an earlier answer, for a follow-up question; "
                "without `scope`, in the same documents."
            ),
            category=CATEGORY,
            scope=SCOPE,
        ),
        "outputSchema": _object(
            ("answer", "conversation_id", "sources"),
            answer=_text("The answer in Markdown; citations are labels in brackets."),
            conversation_id=_text("The conversation, for follow-up questions."),
            sources={"type": "array", "items": CITED},
            followups={"type": "array", "items": {"type": "string"}},
            verification={"type": "array", "items": STATEMENT},
            grade=_text(
                "Without a language model: how certain it is that the quoted passages answer the question.",
                enum=GRADES,
            ),
        ),
        "annotations": WRITES,
    },
}


def tools(allowed: Iterable[str]) -> Json:
    """The result of `tools/list`: the tools that the caller may use."""
    names = set(allowed)
    return {"tools": [tool for name, tool in TOOLS.items() if name in names]}


def search_arguments(members: Mapping[str, Any]) -> SearchArguments:
    """The arguments of `search`. Raises InvalidRequest."""
    return SearchArguments(
        _wanted(members, "query", MAX_QUERY),
        validators.require_integer(members.get("limit", 10), "limit", 1, MAX_RESULTS),
        _optional(members, "category"),
        _scope(members),
    )


def fetch_arguments(members: Mapping[str, Any]) -> str:
    """The id to fetch. Raises InvalidRequest."""
    return _wanted(members, "id", MAX_CURSOR)


def list_arguments(members: Mapping[str, Any]) -> ListArguments:
    """The arguments of `list_sources`. Raises InvalidRequest."""
    return ListArguments(
        _optional(members, "query"),
        validators.require_integer(members.get("limit", 50), "limit", 1, MAX_LISTED),
        _optional(members, "cursor"),
    )


def ask_arguments(members: Mapping[str, Any]) -> AskArguments:
    """The arguments of `ask`. Raises InvalidRequest.

    The length of the question is checked when the run starts.
    """
    return AskArguments(
        _wanted(members, "question"),
        _optional(members, "conversation_id"),
        _optional(members, "category"),
        _scope(members),
    )


def _wanted(members: Mapping[str, Any], member: str, most: int | None = None) -> str:
    if member not in members:
        raise InvalidRequest(f"“{member}” is missing.", member)
    value = validators.require_text(members[member], member)
    if not value.strip():
        raise InvalidRequest(f"“{member}” must not be empty.", member)
    if most is not None and len(value) > most:
        raise InvalidRequest(f"“{member}” is longer than {most:,} characters.", member)
    return value


def _optional(members: Mapping[str, Any], member: str) -> str:
    value = members.get(member)
    return "" if value is None else validators.require_text(value, member)[:MAX_CURSOR]


def _scope(members: Mapping[str, Any]) -> str:
    value = members.get("scope")
    return "" if value in (None, "") else validators.require_scope(value, "scope")


# --- Results of tools ---


def tool_result(structured: Json) -> Json:
    """The result as an object, and as JSON text for clients that only read text."""
    text = COMPACT.encode(structured)
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


def tool_failure(words: str) -> Json:
    """An error as a tool result, for the model that called the tool."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def hits(found: Iterable[tuple[SourceView, str]]) -> Json:
    """The result of `search`: passages with their URLs."""
    results = [
        _link(source, url)
        | {
            "text": source.content,
            "document_id": source.document_id,
            "page": source.page,
            "score": round(source.score, 4),
        }
        for source, url in found
    ]
    return tool_result({"results": results})


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
    """The result of `ask`; `urls` maps the path of each source to an absolute URL."""
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
        **verification(result.verification, result.grade),
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
                "description": "The text of a document, by its id from `list_sources`.",
                "mimeType": "text/plain",
            },
            {
                "uriTemplate": f"{DOCUMENT}{{document}}/{{passage}}",
                "name": "passage",
                "title": "A passage",
                "description": "A passage of a document, by its id from `search`.",
                "mimeType": "text/plain",
            },
        ]
    }


def resource(uri: str, extract: Extract) -> Json:
    """The result of `resources/read`; for a long document, `_meta` has the URI of the next part."""
    content: Json = {"uri": uri, "mimeType": "text/plain", "text": extract.text}
    if extract.next_cursor:
        content["_meta"] = {"next": f"{DOCUMENT}{extract.next_cursor}"}
    return {"contents": [content]}
