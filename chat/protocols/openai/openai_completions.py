"""OpenAI's legacy completions, whose prompt is one text.

Some libraries write a conversation into the prompt, with lines that begin with “system: ”, “user: ” and
“assistant: ”, and an empty “assistant:” at the end. Such a prompt is parsed as a conversation; any other
prompt is the question.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from chat.events import Json, Started
from chat.protocols import validators
from chat.protocols.answer_context import envelope
from chat.protocols.request_body import body_object
from chat.protocols.validators import Reader
from chat.requests import InvalidRequest, RunRequest

from . import openai_members as shared
from .openai_chat import WRITING, OpenAI, counts_usage
from .openai_members import (
    RequestMessages,
)


def _false(value: Any, member: str) -> bool:
    if value is not False:
        raise InvalidRequest(f"“{member}” must be false: nothing else is supported here.", member)
    return False


def _empty(value: Any, member: str) -> None:
    if value is not False and value != "":
        raise InvalidRequest(f"“{member}” is not supported here.", member)


KNOWN: Mapping[str, Reader | None] = {
    **WRITING,
    **shared.CHAT_HARMLESS,
    "prompt": None,
    "best_of": lambda value, member: validators.require_integer(value, member, 1, 1),
    "echo": _false,
    "suffix": _empty,
    "logprobs": _empty,
}
_LINE = re.compile(r"^(system|developer|user|assistant|tool): ?", re.M)
_TO_ANSWER = re.compile(r"^assistant:\s*\Z", re.M)


class OpenAICompletions(OpenAI):
    """The protocol. Complete answers and the chunks of streams have the same form."""

    images_member = "prompt"

    @classmethod
    def of(cls, body: Any) -> "OpenAICompletions":
        return cls(counts=counts_usage({"stream_options": body_object(body).get("stream_options")}))

    def parse(self, body: Any) -> RunRequest:
        members = body_object(body)
        found = shared.read_members(members, KNOWN)
        prompt = members.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        text = validators.require_text(prompt, "prompt")
        collected = RequestMessages()
        lines = list(_LINE.finditer(text))
        if lines and lines[0].start() == 0 and _TO_ANSWER.search(text):
            for line, following in pairwise(lines):
                collected.add(line[1], text[line.end() : following.start()].strip(), "prompt")
        else:
            collected.add("user", text, "prompt")
        generation = shared.generation(found, max_tokens=found.get("max_tokens"), stop=found.get("stop", ()))
        return collected.request("prompt", options=shared.options(found), listed=False, generation=generation)

    def envelope(self, started: Started, *, streamed: bool) -> Json:
        return envelope(started, "text_completion") | {"id": f"cmpl-{started.answer_id}"}

    def choice(self, text: str, reason: str, *, refused: bool, noted: list[Json]) -> Json:
        return {"index": 0, "text": text, "finish_reason": reason, "logprobs": None}

    def piece(self, text: str | None, reason: str | None) -> Json:
        return {"index": 0, "text": text or "", "finish_reason": reason, "logprobs": None}
