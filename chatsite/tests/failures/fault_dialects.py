"""How each protocol reports a failed answer: at once, and after some text."""

import json
from dataclasses import dataclass

from chatsite.tests.failures.fault_table import STATUS, WORDS

JSON = {"Content-Type": "application/json"}
PLAIN, CODED, OPENAI, COMPLETION = "plain", "coded", "openai", "completion"


@dataclass(frozen=True)
class Form:
    """An endpoint of one protocol, and the form of its errors."""

    name: str
    path: str
    error: str
    members: tuple = ()  # of the request, beside its messages
    streamed: bool = True
    keeps_text: bool = False  # whether a failure after some text is sent as a message with that text


FORMS = [
    Form("RAG chat, streamed", "/chat/stream", PLAIN, (("session_state", None),)),
    Form("RAG chat, whole", "/chat", PLAIN, (("session_state", None),), streamed=False),
    Form("AI Chat Protocol, streamed", "/chat/stream", PLAIN, (("sessionState", None),)),
    Form("AI Chat Protocol, whole", "/chat", PLAIN, (("sessionState", None),), streamed=False),
    Form("completions with a context, streamed", "/chat", COMPLETION, (("stream", True),)),
    Form("completions with a context, whole", "/chat", PLAIN, (("stream", False),), streamed=False),
    Form("Chat UI, streamed", "/api/chat/stream", CODED, keeps_text=True),
    Form("Chat UI, whole", "/api/chat/batch", CODED, streamed=False, keeps_text=True),
    Form("minimal Chat UI, streamed", "/api/minimal/chat/stream", CODED, keeps_text=True),
    Form("minimal Chat UI, whole", "/api/minimal/chat/batch", CODED, streamed=False, keeps_text=True),
    Form("OpenAI, streamed", "/v1/chat/completions", OPENAI, (("stream", True),)),
    Form("OpenAI, whole", "/v1/chat/completions", OPENAI, streamed=False),
]


def mark(form, fault):
    return f"{fault}, {form.name}"


def overloaded(response):
    """Whether a question was refused before it was accepted; if the model failed, it was accepted."""
    return response.status == 503 and "Chat-Run" not in response.headers


def asked(session, form, text):
    """Return (status, the reply's last JSON value, the whole reply as text); None if overloaded."""
    body = dict(form.members) | {"messages": [{"role": "user", "content": text}]}
    answer = session.request("POST", form.path, json.dumps(body).encode(), JSON)
    if overloaded(answer):
        return None
    return answer.status, _values(answer)[-1], f"{answer.headers}{answer.text}"


def _values(answer):
    kind = answer.headers["Content-Type"]
    if kind.startswith("text/event-stream"):
        data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return [json.loads(item) if item != "[DONE]" else item for item in data]
    if "json" in kind and "lines" not in kind and "jsonl" not in kind:
        value = answer.json()
        return value if isinstance(value, list) else [value]
    return [json.loads(line) for line in answer.text.splitlines()]


def error(form, code):
    """The expected value of the member `error`."""
    words = WORDS[code]
    if form.error == CODED:
        return {"message": words, "code": code}
    if form.error == OPENAI:
        return {"message": words, "type": "server_error", "param": None, "code": code}
    return words


def status(form, code, text):
    """The expected status of the response."""
    if form.streamed or (form.keeps_text and text):
        return 200
    return STATUS.get(code, 502)
