"""Asks a site through each of its APIs, and collects everything that the site sent and stored."""

import json
import time
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import psycopg

from chatsite.tests.failures.fault_dialects import overloaded
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import reading_parameters

QUESTION = "When must carried days of leave be used?"
JSON = {"Content-Type": "application/json"}
ROW = """
    SELECT message.state, message.error_code, message.content, message.finish_reason,
           message.request_id, message.conversation_id::text AS conversation,
           concat(
               to_jsonb(message), to_jsonb(run),
               (SELECT jsonb_agg(entry.events) FROM chat_journalentry AS entry WHERE entry.run_id = run.id)
           ) AS everything
    FROM chat_run AS run
    JOIN history_message AS message ON message.id = run.answer_id
    WHERE run.id = %s
"""


def question(mark):
    return f"{QUESTION} (case {mark})"


@dataclass
class Outcome:
    """Everything that resulted from one question."""

    reply: str = ""  # the whole reply as text
    value: dict = field(default_factory=dict)  # JSON of a reply that is not streamed
    text: str | None = None  # the answer's text in the reply, or None
    error: str = ""
    status: int = 200
    state: str = ""  # state of the answer, from a socket
    seconds: float = 0.0
    run: str = ""
    retry_after: str | None = None  # of a reply that is not streamed
    request: str = ""  # its id, if the API returns one
    row: dict = field(default_factory=dict)  # the stored message
    history: list = field(default_factory=list)
    page: str = ""

    @property
    def everything(self):
        return "\n".join([self.reply, self.page, self.row["everything"], str(self.history)])

    def thought(self, name):
        """A property of the steps in a whole reply."""
        found = [thought["props"] for thought in self.value["context"]["thoughts"]]
        return next(props[name] for props in found if props and name in props)


def by_stream(session, mark):
    body = {"messages": [{"role": "user", "content": question(mark)}], "session_state": None}
    connection, response = session.stream("POST", "/chat/stream", json.dumps(body).encode(), JSON)
    data = response.read()
    connection.close()
    if overloaded(response):
        return None
    lines = [json.loads(line) for line in data.splitlines()]
    text = "".join(line.get("delta", {}).get("content") or "" for line in lines)
    outcome = Outcome(
        f"{response.headers}{data.decode()}",
        text=text,
        error=lines[-1].get("error", ""),
        status=response.status,
    )
    outcome.run, outcome.request = response.headers["Chat-Run"], response.headers["X-Request-ID"]
    return outcome


def by_whole(session, mark):
    body = {"messages": [{"role": "user", "content": question(mark)}], "session_state": None}
    answer = session.request("POST", "/chat", json.dumps(body).encode(), JSON)
    if overloaded(answer):
        return None
    value = answer.json()
    text = value["message"]["content"] if answer.status == 200 else None
    outcome = Outcome(
        f"{answer.headers}{answer.text}", value, text, error=value.get("error", ""), status=answer.status
    )
    outcome.run, outcome.request = answer.headers["Chat-Run"], answer.headers["X-Request-ID"]
    outcome.retry_after = answer.headers["Retry-After"]
    return outcome


def by_socket(session, mark):
    conversation = session.post_json("/chat-history", {}).json()["id"]
    outcome = Outcome()
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "ask", "text": question(mark), "key": uuid4().hex}))
        while not outcome.state:
            frame = websocket.recv(timeout=HANG_SECONDS)
            outcome.reply += frame
            message = json.loads(frame)
            if message.get("type") == "refused":
                assert message["code"] == "busy", frame
                return None
            outcome.run = message.get("run", outcome.run)
            for part in message.get("messages", []):
                if part["type"] == "done":
                    outcome.state, outcome.error = part["state"], part["note"]
    return outcome


def until_accepted(ask):
    """Return (outcome of a question, its seconds). A question refused as overload is asked again."""
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        began = time.monotonic()
        if outcome := ask():
            return outcome, time.monotonic() - began
        time.sleep(1)
    raise AssertionError("The site is overloaded")


ASK_VIA = {"stream": by_stream, "whole": by_whole, "socket": by_socket}


class Asker:
    """One person at one site."""

    def __init__(self, site, username="employee"):
        self.site = site
        self.session = site.sign_in(username)
        self.session.get("/")

    def ask(self, mark, via="stream"):
        """Ask a question; return the reply, and everything that the rest of the site has about it."""
        outcome, seconds = until_accepted(partial(ASK_VIA[via], self.session, mark))
        outcome.seconds = seconds
        outcome.row = self.row(outcome.run)
        conversation = outcome.row["conversation"]
        outcome.history = self.session.get(f"/chat-history/{conversation}/messages").json()
        outcome.page = self.session.get(f"/c/{conversation}/").text
        return outcome

    def row(self, run):
        parameters = reading_parameters(self.site.folder)
        with psycopg.connect(**parameters, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(ROW, [run]).fetchone()
