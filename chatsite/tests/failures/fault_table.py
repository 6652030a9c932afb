"""What happens to an answer when the model's server fails: one row for each way in which it can."""

import asyncio
import email.utils
import re
import time
from dataclasses import dataclass

from chat.tests.upstream_faults import UPSTREAM_ERROR, answer, chunk, event, limited, raw, status

# A tenth of the site's own deadlines, but a shorter total, so that tests do not wait too long, and a longer
# first one for busy machines. Reasoning that outlasts the first deadline ends well before the total one.
CONNECT, FIRST, IDLE, TOTAL, REST = 2.0, 3.0, 3.0, 10.0, 1.0
CHARACTERS = 20_000
SLACK = 10.0  # seconds that a busy machine may need for all questions at once

DEADLINES = {
    "CHATSITE_ANSWER_CONNECT_SECONDS": str(CONNECT),
    "CHATSITE_ANSWER_FIRST_TOKEN_SECONDS": str(FIRST),
    "CHATSITE_ANSWER_IDLE_SECONDS": str(IDLE),
    "CHATSITE_ANSWER_TOTAL_SECONDS": str(TOTAL),
    "CHATSITE_ANSWER_MAX_CHARACTERS": str(CHARACTERS),
    "CHATSITE_MODEL_REST_SECONDS": str(REST),
}

WORDS = {
    "": "",
    "upstream_unavailable": "The language model is not responding.",
    "upstream_timeout": "The language model took too long to answer.",
    "upstream_protocol": "The language model sent something that cannot be read.",
    "upstream_misconfigured": "The language model refuses this site’s settings.",
    "rate_limited": "The language model accepts no more questions at the moment.",
    "context_overflow": "The question and its sources are too long for the language model.",
    "content_filter": "Your message contains content that was flagged by the OpenAI content filter.",
    "empty_answer": "The language model sent an empty answer.",
    "interrupted": "The answer was interrupted.",
}
NOTES = {
    "interrupted": "The answer was interrupted. The partial answer is kept.",
    "blocked": "The question or the answer was blocked by the content filter.",
}
STATUS = {
    "upstream_timeout": 504,
    "rate_limited": 429,
    "context_overflow": 400,
    "content_filter": 400,
}  # status of a whole answer; 502 for the other codes


@dataclass(frozen=True)
class Fault:
    """One line of the table."""

    name: str
    script: tuple  # behaviours of the server for the question's first stream, the second …
    state: str
    code: str = ""
    text: str | re.Pattern = ""  # the stored text
    calls: int = 1  # number of streams that the server was asked for
    least: float = 0.0  # least seconds until the end; SLACK more at most
    via: str = "stream"
    reason: str = ""  # stored reason for the end of the text

    @property
    def words(self):
        return WORDS[self.code]

    @property
    def note(self):
        """The message below the answer on the page."""
        if self.state == "complete":
            return "The answer reached its length limit." if self.reason == "length" else ""
        return NOTES.get(self.state, f"{self.words} Your question is saved.")

    def is_text(self, text):
        return bool(self.text.fullmatch(text)) if isinstance(self.text, re.Pattern) else text == self.text


def whole(name, script, text, reason="stop", **more):
    """A row for a fault after which the answer is complete."""
    return Fault(name, script, "complete", text=text, reason=reason, **more)


def soon(exchange):
    """A date one or two seconds ahead: HTTP dates have no smaller unit."""
    return limited(email.utils.formatdate(time.time() + 2, usegmt=True))(exchange)


async def long_line_after_text(exchange):
    await exchange.head()
    await exchange.text(HALF)
    await exchange.send(b"data: ")
    for _ in range(2_000):
        await exchange.send(b"x" * 100_000)


async def long_error(exchange):
    await exchange.head(500, "text/html", "Transfer-Encoding: chunked")
    for _ in range(2_000):
        await exchange.send(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")


async def long_text(exchange):
    await exchange.head(200, "application/json", "Transfer-Encoding: chunked")
    for _ in range(2_000):
        await exchange.send(b"186a0\r\n" + b" " * 100_000 + b"\r\n")


async def broken_error(exchange):
    await exchange.head(500, "application/json", "Content-Length: 1000")
    await exchange.send(b'{"error": ')
    exchange.reset()


async def long_reasoning(exchange):
    """The model reasons for longer than the first deadline, and then answers."""
    await exchange.head()
    for _ in range(int(2.5 * FIRST)):
        await exchange.send(chunk(reasoning_content="Let me think. "))
        await asyncio.sleep(0.5)
    await answer("Five days.")(exchange)


GOOD = answer("Five ", "days.")
PARTS = [{"type": "text", "text": "Five "}, {"type": "text", "text": "days."}]
IMAGE = [{"type": "image_url", "image_url": {"url": "data:,"}}]
CALL = [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
RETURNS = (chunk("Five ") + chunk("days.") + chunk(reason="stop")).replace(b"\n", b"\r")
TWO_CHOICES = event(
    {"choices": [{"index": 1, "delta": {"content": "No"}}, {"index": 0, "delta": {"content": "Yes"}}]}
)
SLOW_DOWN = status(503, b"<h1>Later</h1>", "Retry-After: 3600")
HALF, WHOLE = "Half an ", "Half an answer"
LATE, GONE, STRANGE = "upstream_timeout", "upstream_unavailable", "upstream_protocol"
WRONG, LIMITED, CUT = "upstream_misconfigured", "rate_limited", "interrupted"
TOO_LONG, FILTERED = "context_overflow", "content_filter"
ENDLESS = ("on and on " * CHARACTERS)[:CHARACTERS]

FAULTS = [
    Fault("silent before headers", ("silent",), "failed", LATE, least=FIRST),
    Fault("silent before a token", ("silent_before_text",), "failed", LATE, least=FIRST, via="whole"),
    Fault("keep-alive comments and no token", ("only_keep_alive",), "failed", LATE, least=FIRST),
    Fault("reasoning and no token", ("only_reasoning",), "failed", LATE, least=TOTAL),
    whole("reasoning that outlasts the first deadline", (long_reasoning,), "Five days.", least=FIRST),
    Fault("stalled in mid-stream", ("stall",), CUT, LATE, WHOLE, least=IDLE, via="socket"),
    Fault("stalled with keep-alive comments", ("stall_with_keep_alive",), CUT, LATE, WHOLE, least=IDLE),
    Fault("dripping", ("dripping",), CUT, LATE, re.compile("x{20,600}"), least=TOTAL),
    Fault("reset at once", ("reset_at_once",), "failed", GONE, via="socket"),
    Fault("reset before the first token", ("reset_before_text",), "failed", GONE),
    Fault("reset in mid-stream", ("reset",), CUT, CUT, HALF, via="socket"),
    Fault("cut in mid-stream", ("cut",), CUT, CUT, HALF),
    Fault("cut inside a JSON line", ("cut_in_a_line",), CUT, STRANGE, HALF, via="whole"),
    Fault("a clean end without a finish reason", ("no_finish_reason",), CUT, CUT, WHOLE),
    Fault("an end mark without a finish reason", ("done_without_reason",), CUT, CUT, HALF, via="socket"),
    Fault("a finish reason error", (answer(HALF, "answer", reason="error"),), CUT, CUT, WHOLE),
    Fault(
        "an unknown finish reason", (answer(HALF, "answer", reason="abort"),), CUT, CUT, WHOLE, via="socket"
    ),
    Fault("an unknown finish reason alone", (raw(chunk(reason="abort")),), "failed", CUT, via="whole"),
    Fault("calls of tools", (raw(chunk(HALF), chunk(tool_calls=CALL)),), CUT, STRANGE, HALF),
    Fault("an end for calls of tools", (raw(chunk(HALF), chunk(reason="tool_calls")),), CUT, STRANGE, HALF),
    Fault("content that is no text", (raw(chunk(HALF), chunk(IMAGE)),), CUT, STRANGE, HALF),
    whole("content in parts", (raw(chunk(PARTS), chunk(reason="stop")),), "Five days.", via="whole"),
    whole("a second choice", (raw(TWO_CHOICES, chunk(reason="stop")),), "Yes"),
    whole("carriage returns for line feeds", (raw(RETURNS, b"data: [DONE]\r\r"),), "Five days."),
    Fault("an end without anything", ("nothing",), "failed", "empty_answer"),
    Fault("a finish reason without text", ("no_text",), "failed", "empty_answer", via="whole"),
    Fault("500 with a body of 200 MB", (long_error,), "failed", GONE),
    Fault("broken JSON", ("broken_json",), CUT, STRANGE, HALF),
    Fault("broken UTF-8", ("broken_utf8",), CUT, STRANGE, HALF, via="socket"),
    whole("characters split over chunks", ("split_characters",), "Grüße 你好 🙂🙂"),
    whole("lone surrogates and NUL", ("unstorable",), "a\ufffdb\ufffd or \ufffd", via="socket"),
    Fault("HTML with status 200", ("html",), "failed", STRANGE),
    Fault("JSON in place of a stream", ("json",), "failed", STRANGE, via="whole"),
    Fault("events of another shape", ("wrong_shapes",), CUT, STRANGE, HALF),
    Fault("500 with a body that breaks off", (broken_error,), "failed", GONE),
    Fault("empty choices", ("empty_choices",), "failed", "empty_answer", via="socket"),
    Fault("an error object in the stream", ("error_in_stream",), CUT, GONE, HALF),
    Fault("an error object in place of text", (raw(event(UPSTREAM_ERROR)),), "failed", GONE, via="socket"),
    Fault("401 with a key in its text", ("unauthorised",), "failed", WRONG, via="socket"),
    Fault("404 for the model", ("no_such_model",), "failed", WRONG, via="whole"),
    whole("400 for too long a context", ("context_overflow", GOOD), "Five days.", calls=2),
    Fault("400 twice", ("context_overflow", "context_overflow"), "failed", TOO_LONG, calls=2, via="whole"),
    whole("429 with a short wait", ("rate_limited_short", GOOD), "Five days.", calls=2),
    Fault("429 twice", ("rate_limited_short", "rate_limited_short"), "failed", LIMITED, calls=2),
    Fault("429 with a long wait", ("rate_limited_long",), "failed", LIMITED, via="whole"),
    whole("429 until a date soon", (soon, GOOD), "Five days.", calls=2),
    Fault("429 until a date far away", ("rate_limited_until",), "failed", LIMITED, via="socket"),
    Fault("429 until nonsense", ("rate_limited_nonsense",), "failed", LIMITED),
    Fault("429 without a wait", ("rate_limited",), "failed", LIMITED),
    Fault("500 with an HTML body", ("error_500",), "failed", GONE, via="socket"),
    Fault("503 with an HTML body", ("error_503",), "failed", GONE, via="whole"),
    Fault("503 with a wait of an hour", (SLOW_DOWN,), "failed", GONE, via="whole"),
    whole("503 with a short wait", ("error_503_short", GOOD), "Five days.", calls=2),
    Fault("a filtered question", ("filtered_prompt",), "blocked", FILTERED, via="whole"),
    Fault("a filtered answer", ("filtered",), "blocked", FILTERED, HALF),
    whole("an answer cut at its length", ("length",), WHOLE, reason="length"),
    whole("output without end", ("endless",), ENDLESS, reason="length", via="socket"),
    Fault("a line of 200 MB", ("long_line",), "failed", STRANGE),
    Fault("a line of 200 MB after text", (long_line_after_text,), CUT, STRANGE, HALF),
    Fault("a redirect", ("redirect",), "failed", WRONG),
]
AWAY = [
    Fault("refused", (), "failed", GONE, calls=0),
    Fault("a black hole", (), "failed", GONE, calls=0, least=CONNECT, via="whole"),
]
# Retry-After of whole answers, if it differs from the site's default.
RETRY_AFTER = {"429 with a long wait": 60, "503 with a wait of an hour": 300}
NAMES = [fault.name for fault in [*FAULTS, *AWAY]]
