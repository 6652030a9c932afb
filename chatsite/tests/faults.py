"""Support for tests of faults: a model's server controlled by the question, callers, and stored answers.

A question "tell red1 words 40 pause 50" is answered with "red1-0 red1-1 …" and 50 ms between two words, so
each text, whole or cut, shows to which question it belongs and whether it is a prefix.
"""

import asyncio
import contextlib
import json
import re
import shutil
import threading
import time
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo
from websockets.exceptions import ConnectionClosed

from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import chunk
from chatsite.accounts.api_keys import (
    hash_key,
    new_key,
)
from chatsite.server.embedded_postgres import (
    Cluster,
    connection_parameters,
)
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import Site, prepared, temporary_folder

SCRIPT = re.compile(r"tell (\w+) words (\d+) pause (\d+)")
FILL = re.compile(r"fill \w+ with (\d+) times (\S+) around (\S+)")  # texts of a hostile model
FILLINGS = {"spaces": " ", "tabs": "\t", "lines": "\n", "brackets": "["}
PASSWORD = "correct horse battery"
HASH = "pbkdf2_sha256$1$salt$kbetH8pvQW2woEDkqwW3lBiusahaNsvlbcMnQlA1Qxc="
SHORT = {  # deadlines of the site under test
    "CHATSITE_LEASE_SECONDS": "2",
    "CHATSITE_READER_SECONDS": "1",
    "CHATSITE_GRACE_SECONDS": "4",
    "CHATSITE_USER_CONCURRENT_ANSWERS": "10000",
    "CHATSITE_USER_QUESTIONS_PER_MINUTE": "100000",
    "CHAT_MODEL": "fake",
    "OPENAI_API_KEY": "sk-fake",
}
READY = "SELECT count(*) FROM ingestion_document WHERE status = 'ready'"
STORED = """
    SELECT question.content, answer.state, answer.error_code, answer.content, run.id::text
    FROM chat_run AS run
    JOIN history_message AS question ON question.id = run.question_id
    JOIN history_message AS answer ON answer.id = run.answer_id
    WHERE question.content LIKE %s
"""


def question_for(token, words=40, pause=20):
    """A question whose answer has so many words, with pauses of so many milliseconds between them."""
    return f"tell {token} words {words} pause {pause}"


def answer_to(question):
    """The whole answer to a question."""
    token, words, _ = SCRIPT.search(question).groups()
    return "".join(f"{token}-{number} " for number in range(int(words)))


def body_of(question, conversation=None):
    """The body of a request. Without earlier messages or documents, the site would not ask the model."""
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    messages = [*said, {"role": "user", "content": question}]
    return json.dumps({"messages": messages, "session_state": conversation}).encode()


def new_token(name="t"):
    """A unique token for a question."""
    return f"{name}{uuid4().hex[:10]}"


class Upstream(FakeOpenAI):
    """Answers each stream as its question says, and counts the streams of each question."""

    async def _answer(self, exchange):
        if exchange.request.streaming:
            self._script = [_tell]
        await super()._answer(exchange)

    def calls(self, token):
        return [_asked(request)[0] for request in list(self.streams)].count(token)


def _asked(request):
    """Token, words and pause of the last question; the prompt also has the earlier ones."""
    return SCRIPT.findall(request.prompt)[-1]


async def _tell(exchange):
    if filled := FILL.findall(exchange.request.prompt):
        await _fill(exchange, *filled[-1])
        return
    token, words, pause = _asked(exchange.request)
    await exchange.head()
    for number in range(int(words)):
        await exchange.send(chunk(f"{token}-{number} "))
        await asyncio.sleep(int(pause) / 1000)
    await exchange.end()


async def _fill(exchange, count, filling, label):
    """A citation, some white space or brackets in large pieces, and the citation again."""
    await exchange.head()
    rest = int(count)
    await exchange.send(chunk(f"The ferry sails [{label}] "))
    while rest > 0:
        await exchange.send(chunk(FILLINGS[filling] * min(rest, 5_000)))
        rest -= 5_000
    await exchange.send(chunk(f"and so on [{label}]."))
    await exchange.end()


class Caller:
    """Somebody with an account and an API key."""

    def __init__(self, site, username, secret):
        self.site, self.username, self.secret = site, username, secret

    def ask(self, question, key=None, conversation=None, path="/chat/stream", timeout=HANG_SECONDS):
        """(connection, response): a stream of which only the head was read."""
        headers = self.headers(**({"Idempotency-Key": key} if key else {}))
        return self.site.session().stream("POST", path, body_of(question, conversation), headers, timeout)

    def whole(self, question, **values):
        """Wait for a whole answer; return (status, body)."""
        connection, response = self.ask(question, path="/chat", **values)
        try:
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def accepted(self, question, key=None, **values):
        """(connection, response) of a question that is asked again as long as the site is overloaded.

        A web process that has just started may take longer for its first questions than they may take.
        """
        key, deadline = key or new_token("key"), time.monotonic() + HANG_SECONDS
        while True:
            connection, response = self.ask(question, key=key, **values)
            if response.status != 503:
                return connection, response
            connection.close()
            assert time.monotonic() < deadline, "The site is overloaded"
            time.sleep(0.5)

    def begin(self, question, **values):
        """Start an answer without reading it, and return its run."""
        connection, response = self.accepted(question, **values)
        connection.close()
        assert response.status == 200, response.status
        return response.headers["Chat-Run"]

    def headers(self, **more):
        return {"Content-Type": "application/json", "Authorization": f"Bearer {self.secret}"} | more

    def request(self, method, path, timeout=HANG_SECONDS):
        return self.site.session().request(method, path, headers=self.headers(), timeout=timeout)

    def events(self, run, after=0, timeout=HANG_SECONDS):
        """(connection, response) of the events of a run after that number."""
        path = f"/chat/runs/{run}/events?after={after}"
        return self.site.session().stream("GET", path, None, self.headers(), timeout)

    def end(self, run):
        """Read a run's events; return the text and the last chunk."""
        connection, response = self.events(run)
        chunks = [json.loads(line) for line in response]
        connection.close()
        return "".join(piece.get("text", "") for piece in chunks), chunks[-1]


class FaultSite(Site):
    """A site with a model's server, callers, and its own database unless `parameters` name one."""

    def __init__(self, folder, upstream, parameters=None, **values):
        self.parameters = parameters or connection_parameters(Path(folder))
        # All callers here have one address, whose limit would make them wait for each other.
        together = {"OPENAI_BASE_URL": upstream.url, "CHATSITE_ADDRESS_CONCURRENT_REQUESTS": "0"}
        values = SHORT | together | values
        if parameters:
            values["DATABASE_URL"] = make_conninfo(**parameters)
        super().__init__(folder, demo=False, **values)
        self.upstream = upstream

    def query(self, statement, *values):
        parameters = self.parameters | {"options": "-c chatsite.reader=everything"}
        with psycopg.connect(**parameters, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else None

    def caller(self, username=""):
        """A new account, with `PASSWORD`, and its key."""
        username, secret = username or new_token("u"), new_key()
        [(user,)] = self.query(
            "INSERT INTO accounts_user (username, password, first_name, last_name, email, is_staff,"
            " is_superuser, is_active, date_joined) VALUES (%s, %s, '', '', '', false, false, true, now())"
            " RETURNING id",
            username,
            HASH,
        )
        self.query(
            "INSERT INTO accounts_apikey (user_id, name, prefix, digest, created_at)"
            " VALUES (%s, 'test', %s, %s, now())",
            user,
            secret[:12],
            hash_key(secret),
        )
        return Caller(self, username, secret)

    def stored(self, token):
        """[(question, state, error code, text, run)] of all questions with a token."""
        return self.query(STORED, f"tell {token} %")

    def ended(self, token, seconds=HANG_SECONDS):
        """(state, code, text) of the one answer to the one question with a token, once it has ended.

        The text is an exact prefix of what the model's server sent.
        """
        deadline = time.monotonic() + seconds + MARGIN_SECONDS
        while True:
            rows = self.stored(token)
            assert len(rows) <= 1, "asked twice"
            if rows and rows[0][1] not in ("queued", "streaming"):
                break
            assert time.monotonic() < deadline, f"{token} has not ended: {rows}"
            time.sleep(0.05)
        [(question, state, code, text, _)] = rows
        whole = answer_to(question)
        assert whole.startswith(text), f"what is stored is no prefix: {state} {code} {text!r}"
        assert (state == "complete") <= (text == whole), "complete, but not whole"
        return state, code, text

    def web_processes(self):
        return self.children("chatsite.server.serving.web_process")


def upload(session, name, data, timeout=20, who="everyone"):
    """Add a file; return (status, reply)."""
    fields = {"csrfmiddlewaretoken": session.cookies["csrftoken"], "who": who}
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    ]
    file = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = "".join([*parts, file]).encode() + data + b"\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Accept": "application/json"}
    answer = session.request("POST", "/documents/add/", body, headers, timeout)
    return answer.status, answer.json()


@contextlib.contextmanager
def cluster(migrated=True):
    """A PostgreSQL that only the test starts and stops, with a migrated database."""
    folder = temporary_folder()
    if migrated:
        prepared(folder, demo=False)
    server = Cluster(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def close_code(websocket, seconds=HANG_SECONDS):
    """The code with which the site closes a WebSocket; earlier frames are ignored."""
    try:
        while True:
            websocket.recv(timeout=seconds + MARGIN_SECONDS)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


def at_once(*calls, seconds=HANG_SECONDS):
    """The result of each function, or the exception it raised; all start at the same moment."""
    found, gate = [None] * len(calls), threading.Barrier(len(calls))

    def run(place, call):
        gate.wait()
        try:
            found[place] = call()
        except Exception as error:  # returned to the caller
            found[place] = error

    threads = [
        threading.Thread(target=run, args=(place, call), daemon=True) for place, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds + MARGIN_SECONDS
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
        assert not thread.is_alive(), f"not done within {seconds} s"
    return found
