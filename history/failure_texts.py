"""The errors that can end an answer.

Does not import Django, because chat.protocols must not depend on it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorText:
    """The message for people, and the HTTP status if the error precedes the response."""

    status: int
    words: str


# Not translated: the text of the published protocol.
CONTENT_FILTER = "Your message contains content that was flagged by the OpenAI content filter."

FAILURES: dict[str, ErrorText] = {
    "rate_limited": ErrorText(429, "The language model accepts no more questions at the moment."),
    "upstream_unavailable": ErrorText(502, "The language model is not responding."),
    "upstream_timeout": ErrorText(504, "The language model took too long to answer."),
    "upstream_protocol": ErrorText(502, "The language model sent something that cannot be read."),
    "upstream_misconfigured": ErrorText(502, "The language model refuses this site’s settings."),
    "context_overflow": ErrorText(400, "The question and its sources are too long for the language model."),
    "content_filter": ErrorText(400, CONTENT_FILTER),
    "format_refused": ErrorText(400, "The language model does not write answers in this format."),
    "length_refused": ErrorText(400, "The language model does not accept this token limit."),
    "empty_answer": ErrorText(502, "The language model sent an empty answer."),
    "interrupted": ErrorText(502, "The answer was interrupted."),
    "storage_full": ErrorText(507, "The server's disk is full. Tell the operator of the site."),
}
OTHER_FAILURE = "The answer could not be written."
