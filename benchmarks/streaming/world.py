"""The real site with the fake model, people with keys, and a connection to its database."""

import contextlib
import hashlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.server import Site

from .upstream import pieces

QUESTION = "How many days of annual leave do I have? ({number})"
FREE = {"CHATSITE_USER_CONCURRENT_ANSWERS": "10000", "CHATSITE_USER_QUESTIONS_PER_MINUTE": "100000"}
FREE |= {"CHATSITE_PROCESS_ANSWERS": "10000", "CHATSITE_USER_CONNECTIONS": "10000"}
FREE |= {"CHATSITE_ADDRESS_CONCURRENT_REQUESTS": "0", "CHATSITE_CALLER_CONCURRENT_REQUESTS": "0"}
FREE |= {"CHATSITE_LOOP_WATCHDOG_SECONDS": "0"}  # switched off, as by default
PEOPLE = """
    INSERT INTO accounts_user (username, password, first_name, last_name, email, is_superuser, is_staff,
        is_active, date_joined)
    SELECT 'person' || number, '!', '', '', '', false, false, true, now()
    FROM generate_series(0, %s) AS number RETURNING id
"""
KEYS = """
    INSERT INTO accounts_apikey (user_id, name, prefix, digest, created_at)
    VALUES (%s, 'benchmark', 'benchmark', %s, now())
"""
READ = "SELECT count(*) = 0 FROM ingestion_document WHERE status NOT IN ('ready', 'failed')"
ANSWERS = """
    SELECT message.exchange::text, message.state, message.content
    FROM history_message AS message WHERE message.role = 'assistant'
"""

WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s"
STATISTICS_SECONDS = 2.0  # after this time a session has reported its statistics

MANY = 1_000_000
OWN = """
    SELECT id FROM history_conversation
    WHERE owner_id = (SELECT id FROM accounts_user WHERE username = %s) LIMIT 1
"""
BEGIN = """
    INSERT INTO history_conversation
        (id, owner_id, title, title_by_owner, mode, listed, created_at, updated_at)
    SELECT gen_random_uuid(), id, 'Idle', false, 'standard', true, now(), now()
    FROM accounts_user WHERE username = %s RETURNING id
"""


class World:
    """A running site; `keys` has one key for each person."""

    def __init__(self, site: Site, people: int) -> None:
        self.site = site
        self._database = psycopg.connect(**self.parameters, autocommit=True)
        self._wait_for_documents()
        self.keys = self._people(people)
        self._asked = 0

    @property
    def port(self) -> int:
        return int(self.site.url.rpartition(":")[2])

    @property
    def web(self) -> int:
        """The pid of the web process."""
        return int(self.site.children("chatsite.server.serving.web_process")[0].pid)

    def rows(self, statement: str, *parameters: Any) -> list[Any]:
        return self._database.execute(statement, parameters).fetchall()

    def wal_bytes(self) -> int:
        """The bytes of write-ahead log that the database has written so far."""
        return int(self.rows(WAL)[0][0])

    def updates(self, table: str) -> tuple[int, int]:
        """The updates of a table so far, and how many of them touched no index (heap-only tuples)."""
        time.sleep(STATISTICS_SECONDS)
        every, heap_only = self.rows(UPDATES, table)[0]
        return int(every), int(heap_only)

    def questions(self, number: int, different: int = MANY, tokens: int = 0) -> dict[str, Any]:
        """A plan of requests with questions, each by a different person if there are enough people.

        After `different` questions, the texts are repeated. `tokens` is the length of the answers, if it
        differs from the model's default.
        """
        numbers = [each % different for each in range(self._asked, self._asked + number)]
        self._asked += number
        wish = f" Answer in {tokens} tokens." if tokens else ""
        texts = [QUESTION.format(number=each) + wish for each in numbers]
        return {
            "path": "/chat/stream",
            "port": self.port,
            "bodies": [{"messages": [{"role": "user", "content": text}]} for text in texts],
            "headers": [{"Authorization": f"Bearer {self.keys[each % len(self.keys)]}"} for each in numbers],
        }

    def not_whole(self, runs: dict[str, int], tokens: int) -> tuple[list[str], list[str]]:
        """The runs of which only the beginning of the sent text was stored, and those with another text.

        `runs` has the number of each run's question.
        """
        stored = {run: (state, text) for run, state, text in self.rows(ANSWERS)}
        short: list[str] = []
        wrong: list[str] = []
        for run, number in runs.items():
            state, text = stored.get(run, ("missing", ""))
            sent = "".join(pieces(number, tokens))
            if state not in ("complete", "missing") and sent.startswith(text):
                short.append(run)
            elif (state, text) != ("complete", sent):
                wrong.append(run)
        return short, wrong

    def conversation(self, username: str) -> str:
        """A conversation of this person, created if there is none."""
        found = self.rows(OWN, username) or self.rows(BEGIN, username)
        return str(found[0][0])

    def read_pages(self) -> None:
        """Requests other than questions: the portal's pages, a search, a person's history."""
        session = self.site.sign_in("employee")
        for path in ("/", "/search/?q=leave", "/documents/"):
            assert session.get(path).status == 200, path
        for path in ("/chat-history", "/chat-history/search?q=leave"):
            answer = session.get(path, Authorization=f"Bearer {self.keys[0]}")
            assert answer.status == 200, path

    def close(self) -> None:
        self._database.close()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a database session that reads everything."""
        return connection_parameters(self.site.folder) | {"options": "-c chatsite.reader=everything"}

    def _wait_for_documents(self) -> None:
        deadline = time.monotonic() + 300
        while not self.rows(READ)[0][0]:
            assert time.monotonic() < deadline, "The sample documents were not read."
            time.sleep(0.5)

    def _people(self, number: int) -> list[str]:
        keys = ["chs_" + secrets.token_urlsafe(32) for _ in range(number)]
        for (person,), key in zip(self.rows(PEOPLE, number - 1), keys, strict=True):
            self._database.execute(KEYS, [person, hashlib.sha256(key.encode()).hexdigest()])
        return keys


@contextlib.contextmanager
def world(upstream: int, people: int = 400, **environment: str) -> Iterator[World]:
    """Start a site that uses the model at the port `upstream`."""
    folder = Path(tempfile.mkdtemp(prefix="chatsite-bench-"))
    model = {"CHAT_MODEL": "fast", "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1"}
    try:
        with Site(folder, **FREE, **model, OPENAI_API_KEY="none", **environment) as site:
            running = World(site, people)
            try:
                yield running
            finally:
                running.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
