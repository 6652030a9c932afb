"""What happens to questions and documents when the embedding server fails."""

import json
import time
from dataclasses import dataclass

import psycopg

from chat.tests.upstream_faults import HTML, KEY, status
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import TOKEN, reading_parameters

DIMENSIONS = 8
BOUNDARY = "b-7c1f"
SETTINGS = {
    "EMBEDDING_MODEL": "fake-embedding",
    "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    "CHATSITE_EMBEDDING_QUESTION_SECONDS": "3",
}
ROWS = "SELECT name, status, reason FROM ingestion_document WHERE name = ANY(%s)"
NO_VECTORS = "The embedding service did not return vectors."
OTHER_SIZE = "The embedding service returned vectors that do not have 8 numbers."


@dataclass(frozen=True)
class BadEmbedding:
    """One way to fail. A document's owner sees `reason`; the document is either tried again or has failed."""

    name: str
    behave: object
    state: str
    reason: str

    @property
    def document(self):
        return f"{self.name.replace(' ', '-')}.md"


def numbers(*values):
    """Respond with a vector of these values for each text."""

    async def behave(exchange):
        count = len(exchange.request.body["input"])
        items = [{"object": "embedding", "index": place, "embedding": values} for place in range(count)]
        # Python writes NaN, which is invalid JSON.
        await exchange.whole(200, json.dumps({"object": "list", "data": items}).encode())

    return behave


FAILS = [
    BadEmbedding(
        "failing embedding",
        status(500, HTML),
        "waiting",
        "The embedding service does not answer (500).",
    ),
    BadEmbedding("embedding of another size", numbers(*[0.1] * 5), "failed", OTHER_SIZE),
    BadEmbedding("NaN in an embedding", numbers(*[0.1] * 7, float("nan")), "waiting", NO_VECTORS),
    BadEmbedding(
        "refused embedding",
        status(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
        "failed",
        "The embedding service refuses the request (401).",
    ),
]


def upload(session):
    """Add a document for each of the faults."""
    token = TOKEN.search(session.get("/documents/add/").text).group(1)
    parts = [_part('name="csrfmiddlewaretoken"', token), _part('name="who"', "me")]
    for fault in FAILS:
        text = f"# Trams\n\nTrams leave at seven (case {fault.name})."
        parts.append(_part(f'name="file"; filename="{fault.document}"', text))
    body = "".join([*parts, f"--{BOUNDARY}--\r\n"]).encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Accept": "application/json"}
    answer = session.request("POST", "/documents/add/", body, kind)
    assert answer.status == 201, answer.text


def _part(disposition, text):
    return f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{text}\r\n"


def told(site, seconds=HANG_SECONDS):
    """{name of a document: (state, reason)}, after the worker has tried all of them."""
    deadline = time.monotonic() + seconds
    names = [fault.document for fault in FAILS]
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while True:
            rows = connection.execute(ROWS, [names]).fetchall()
            if all(reason for _, _, reason in rows):
                return {name: (state, reason) for name, state, reason in rows}
            assert time.monotonic() < deadline, rows
            time.sleep(0.1)
