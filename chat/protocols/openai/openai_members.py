"""Request members of OpenAI's protocols: supported, ignored or refused.

An unsupported member is refused with a 400 that names it, so that no client relies on its effect; only
labels, hints, permissions and offered tools are ignored.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chat import errors
from chat.attachments import (
    MAX_IMAGES,
    image,
)
from chat.protocols import validators
from chat.protocols.validators import Reader, integer_from, number_from, one_of, text_of
from chat.requests import (
    EarlierMessage,
    Generation,
    ImageInput,
    InvalidRequest,
    JsonFormat,
    Options,
    RunRequest,
)

MAX_WISH = 10_000  # characters of all system and developer messages together
MAX_TEXT = 1_000_000  # characters of all messages; the limit of a body is higher only because of images
MAX_SCHEMA = 50_000  # characters of a JSON schema
NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # a NUL in JSON; in the text “\u0000”, the backslash is doubled
MAX_TOKENS = 2_147_483_647
MAX_STOPS, MAX_STOP = 4, 100
MAX_TOOLS = 200
MAX_LABEL = 1_000  # characters of a value that is only a label
MAX_LABELS = 16  # pairs of `metadata`

a_label: Reader = text_of(MAX_LABEL)

_DATA_URL = re.compile(r"data:[\w.+-]{1,50}/[\w.+-]{1,50};base64,")


def _only(*allowed: Any) -> Reader:
    """A reader that only accepts values without effect."""

    def read(value: Any, member: str) -> Any:
        # Types are compared too: a number is not a boolean, although 0 == False.
        if not any(type(value) is type(each) and value == each for each in allowed):
            choices = " or ".join(json.dumps(each) for each in allowed)
            raise InvalidRequest(f"“{member}” must be {choices}: nothing else is supported here.", member)
        return value

    return read


def metadata(value: Any, member: str) -> dict[str, str]:
    pairs = validators.require_object(value, member)
    if len(pairs) > MAX_LABELS:
        raise InvalidRequest(f"“{member}” must have at most {MAX_LABELS} pairs.", member)
    return {a_label(name, member): a_label(text, member) for name, text in pairs.items()}


def stop_sequences(value: Any, member: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else validators.require_list(value, member)
    if len(items) > MAX_STOPS:
        raise InvalidRequest(f"“{member}” must contain at most {MAX_STOPS} sequences.", member)
    found = tuple(validators.require_text(item, member) for item in items)
    if any(not 0 < len(text) <= MAX_STOP for text in found):
        raise InvalidRequest(f"“{member}” must contain texts of 1 to {MAX_STOP} characters.", member)
    return found


MAX_OUTPUT: Reader = integer_from(1, MAX_TOKENS)
TEMPERATURE: Reader = number_from(0, 2)
# Members that affect the model; each has the name of the field of Generation that it sets.
SAMPLING: Mapping[str, Reader] = {
    "top_p": number_from(0, 1),
    "presence_penalty": number_from(-2, 2),
    "frequency_penalty": number_from(-2, 2),
    "seed": integer_from(-(2**63), 2**63 - 1),
}
EFFORT: Reader = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITY: Reader = one_of("low", "medium", "high")
# Members that are ignored: labels, hints, permissions, and values that request nothing.
HARMLESS: Mapping[str, Reader] = {
    "user": a_label,
    "safety_identifier": a_label,
    "prompt_cache_key": a_label,
    "prompt_cache_retention": a_label,
    "prompt_cache_options": validators.require_object,
    "metadata": metadata,
    "parallel_tool_calls": validators.require_boolean,
    "service_tier": _only("auto", "default"),
    "top_logprobs": _only(0),
}
CHAT_HARMLESS: Mapping[str, Reader] = {
    **HARMLESS,
    "n": integer_from(1, 1),
    "store": _only(False),
    "logprobs": _only(False),
    "logit_bias": _only({}),
    "modalities": _only(["text"]),
    "prediction": validators.require_object,
}


def read_members(members: Mapping[str, Any], known: Mapping[str, Reader | None]) -> dict[str, Any]:
    """The parsed members; null counts as absent.

    Members without a reader are parsed elsewhere. Raises InvalidRequest for an unknown or invalid member.
    """
    found: dict[str, Any] = {}
    for name, value in members.items():
        if value is None:
            continue
        if name not in known:
            shown = name[:100]
            raise InvalidRequest(f"“{shown}” is not supported here.", shown)
        if read := known[name]:
            found[name] = read(value, name)
    return found


def check_tools(
    members: Mapping[str, Any],
    tools: str = "tools",
    choice: str = "tool_choice",
    *,
    form: str = "response_format",
) -> None:
    """Refuse a request that requires a tool call, or whose list of tools is invalid.

    Tools may be offered, but the site never calls any. Many libraries require a call to get JSON, so the
    refusal names `form`, the member for answers as JSON.
    """
    offered = []
    if members.get(tools) is not None:
        offered = validators.require_list(members[tools], tools)
        if len(offered) > MAX_TOOLS:
            raise InvalidRequest(f"“{tools}” must contain at most {MAX_TOOLS} tools.", tools)
        for place, tool in enumerate(offered):
            if not isinstance(tool, dict):
                raise InvalidRequest(f"“{tools}[{place}]” must be an object.", f"{tools}[{place}]")
    chosen = members.get(choice)
    if chosen in (None, "auto", "none") or (chosen == "required" and not offered):
        return
    reason = f"this site calls no tools. For an answer as JSON, use “{form}”."
    raise InvalidRequest(f"“{choice}” must be “auto” or “none”: {reason}", choice)


def json_format(value: Any, member: str, *, nested: bool) -> JsonFormat | None:
    """The JSON format in a request; None for text.

    With `nested`, the schema is in the member `json_schema` (as in `response_format`); otherwise the object
    itself contains it (as in `text.format`).
    """
    given = validators.require_object(value, member)
    kind = validators.require_choice(
        given.get("type"), f"{member}.type", ("text", "json_object", "json_schema")
    )
    if kind == "text":
        return None
    if kind == "json_object":
        return JsonFormat()
    place = f"{member}.json_schema" if nested else member
    described = validators.require_object(given.get("json_schema"), place) if nested else given
    schema = described.get("schema")
    if not isinstance(schema, dict):
        raise InvalidRequest(f"“{place}.schema” must be an object.", f"{place}.schema")
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise InvalidRequest(
            f"“{place}.schema” must have at most {MAX_SCHEMA:,} characters.", f"{place}.schema"
        )
    storable(schema, f"{place}.schema")
    name = a_label(described.get("name"), f"{place}.name")
    description, strict = described.get("description"), described.get("strict")
    return JsonFormat(
        schema,
        name,
        a_label(description, f"{place}.description") if description is not None else "",
        validators.require_boolean(strict, f"{place}.strict") if strict is not None else None,
    )


def storable(value: Any, member: str) -> Any:
    """The value. Raises InvalidRequest if one of its texts cannot be stored."""
    if NULL.search(json.dumps(value)):
        raise InvalidRequest(f"“{member}” contains characters that are not text.", member)
    return value


@dataclass(slots=True)
class RequestMessages:
    """Collects the messages of a request in order."""

    turns: list[EarlierMessage] = field(default_factory=list)
    wishes: list[str] = field(default_factory=list)
    images: list[ImageInput] = field(default_factory=list)
    question: int | None = None  # the index of the last user message in `turns`
    # The role of the last message that is not an instruction, and the member of the request that contains it.
    last: str = ""
    last_member: str = ""
    _length: int = 0

    def add(self, role: str, text: str, member: str) -> None:
        self._length += len(text)
        if self._length > MAX_TEXT:
            raise InvalidRequest(errors.words("messages_too_long"), member)
        if role in ("system", "developer"):
            self._wish(text, member)
            return
        self.last, self.last_member = role, member
        if role == "user":
            self.question = len(self.turns)
            self.turns.append(EarlierMessage("user", text))
        elif text.strip():
            answer = f"Result of a tool:\n{text}" if role in ("tool", "function") else text
            self.turns.append(EarlierMessage("assistant", answer))

    def text(
        self,
        role: str,
        content: Any,
        member: str,
        read: Callable[["RequestMessages", str, Any, str], str | None],
    ) -> str:
        """The text of a message, which is a string or a list of parts; `read` reads one part."""
        if content is None and role != "user":
            return ""
        if not isinstance(content, list):
            return validators.require_text(content, member)
        parts = [read(self, role, part, f"{member}[{place}]") for place, part in enumerate(content)]
        return "\n".join(text for text in parts if text is not None)

    def add_image(self, url: Any, member: str) -> None:
        """Add an image in a data URL; other URLs are refused, because the site does not fetch them."""
        text = validators.require_text(url, member)
        found = _DATA_URL.match(text)
        if not found:
            raise InvalidRequest(f"“{member}” must be a base64 data URL: no image is fetched.", member)
        if len(self.images) == MAX_IMAGES:
            raise InvalidRequest(errors.words("too_many_images"), member)
        try:
            data = base64.b64decode(text[found.end() :], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest(f"“{member}” is not valid base64.", member) from None
        self.images.append(image(member, data))

    def request(self, member: str, **values: Any) -> RunRequest:
        """The request, whose question is the last user message. Raises InvalidRequest.

        If there is no user message, the error names `member`.
        """
        if self.last and self.last not in ("user", "tool", "function"):
            where = f"{self.last_member}.role"
            raise InvalidRequest(f"“{where}” must be “user”: the last message is the question.", where)
        if self.question is None:
            raise InvalidRequest(f"“{member}” must contain a user message.", member)
        # Merge consecutive answers, because some models require alternating roles.
        earlier: list[EarlierMessage] = []
        for place, turn in enumerate(self.turns):
            if place == self.question:
                continue
            if turn.role == "assistant" and earlier and earlier[-1].role == "assistant":
                earlier[-1] = EarlierMessage("assistant", f"{earlier[-1].content}\n\n{turn.content}")
            else:
                earlier.append(turn)
        return RunRequest(
            self.turns[self.question].content,
            earlier=tuple(earlier),
            images=tuple(self.images),
            wish="\n\n".join(self.wishes),
            **values,
        )

    def _wish(self, text: str, member: str) -> None:
        if text.strip():
            self.wishes.append(text.strip())
        if len("\n\n".join(self.wishes)) > MAX_WISH:
            raise InvalidRequest(errors.words("system_messages_too_long"), member)


def generation(found: Mapping[str, Any], **values: Any) -> Generation:
    """The generation options in parsed members."""
    sampling: dict[str, Any] = {name: found.get(name) for name in SAMPLING}
    return Generation(**sampling, **values)


def options(found: Mapping[str, Any]) -> Options:
    if "temperature" in found:
        return Options(followups=False, temperature=found["temperature"])
    return Options(followups=False)
