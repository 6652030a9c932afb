"""The time and queries of /chat-history with a thousand stored messages, and with a million.

    python benchmarks/bench_history.py [messages]      by default, 1,000,000 in the large database

Two databases of one server, and three people. Each has 100 or more conversations of five messages, and a
newest one of 500. One word is only in the oldest conversation, another one in 20 of them. The first is alone
in a database, with a thousand messages. In the large database, the second person also has a thousand
messages, 99 other people have a thousand each, and the third person has all the rest. The three people make
every request in turns, so that other load affects all of them. Times cover the whole request, from the
client's call until the body is read; the ratios are to the first person's times.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from statistics import quantiles
from typing import Any
from unittest.mock import patch

from collections_bench import empty_database

# isort: split
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.test import Client

from chatsite.accounts.models import ApiKey, User
from history.models import Conversation, Message

SIZE = 1_000_000
WHO = ("a thousand", "a thousand of a million", "the rest of a million")
INDEX = next(index for index in Message._meta.indexes if index.name == "message_search")
IN_ONE, IN_LARGEST, OF_ONE = 5, 500, 1_000
OTHERS = 99
REPEATED = 100
BATCH = 20_000  # conversations in one statement
FILLER = (
    "The committee read the report on safety and travel, and asked for figures by the end of the quarter. "
)
COMMON = "the committee read report on safety and travel asked for figures by end of quarter message"
# Words in every message of the 99 people, and in every message of the heavy owner.
OTHERS_WORD, HEAVY_WORD = "harvest", "vintage"
CONVERSATIONS = """
    INSERT INTO history_conversation
        (id, owner_id, title, title_by_owner, mode, listed, created_at, updated_at, search)
    SELECT gen_random_uuid(), owner_id, 'Conversation ' || number, false, 'standard', true, now(),
        now() - number * interval '1 second',
        array_to_tsvector(ARRAY['conversation', number::text, 'owner:' || owner_id])
    FROM generate_series(%(first)s, %(last)s) AS number,
       LATERAL (SELECT (%(owners)s::bigint[])[1 + number %% cardinality(%(owners)s::bigint[])]) AS o(owner_id)
    RETURNING id
"""
MESSAGES = """
    INSERT INTO history_message
        (id, conversation_id, position, role, content, state, finish_reason, error_code, request_id,
        agent_name, imported, content_type, citations, followups, thoughts, usage, created_at, search)
    SELECT gen_random_uuid(), id, position, CASE position %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
        'Message ' || position || '. ' || repeat(%(text)s, 3), 'complete', 'stop', '', '', '',
        false, '', '[]', '[]', '[]', '{}', now(),
        array_to_tsvector(%(words)s::text[] || ('owner:' || owner_id))
    FROM history_conversation, generate_series(0, %(in_one)s - 1) AS position WHERE id = ANY(%(ids)s)
"""
RARE = """
    UPDATE history_message SET search = array_to_tsvector(tsvector_to_array(search) || %(word)s::text),
        content = content || %(word)s
    WHERE position = 0 AND conversation_id = ANY(%(ids)s)
"""
Asked = Callable[[], Any]


def main() -> None:
    size = int(sys.argv[1]) if sys.argv[1:] else SIZE
    with empty_database() as alone:
        with indexed_afterwards():
            small = fill([alone.user_id], OF_ONE)
        with session() as use_small, empty_database() as usual, session() as use_large:
            started = time.perf_counter()
            with indexed_afterwards():
                heavy, others = people()
                light, _ = fill([usual.user_id], OF_ONE), fill(others, OTHERS * OF_ONE, OTHERS_WORD)
                large = fill([heavy], size - (1 + OTHERS) * OF_ONE, HEAVY_WORD)
            print(f"{size:,} messages after {time.perf_counter() - started:.0f} s\n", flush=True)
            compare([(use_small, small), (use_large, light), (use_large, large)])


def people() -> tuple[int, list[int]]:
    """The heavy owner of the large database, and the others."""
    others = [User(username=f"person{number}") for number in range(OTHERS)]
    return User.objects.create(username="heavy").pk, [row.pk for row in User.objects.bulk_create(others)]


def fill(owners: list[int], size: int, also: str = "") -> User:
    """Write `size` messages in total; return the owner of the conversation with 500."""
    words = f"{COMMON} {also}".split()
    with connection.cursor() as cursor:
        ordinary = conversations(cursor, owners, 1, (size - IN_LARGEST) // IN_ONE)
        for start in range(0, len(ordinary), BATCH):
            say(cursor, ordinary[start : start + BATCH], IN_ONE, words)
        say(cursor, conversations(cursor, owners[:1], 0, 0), IN_LARGEST, words)
        each = max(1, len(ordinary) // (20 * len(owners)))
        for word, of_them in {
            "periscope": ordinary[-1:],
            "lantern": ordinary[::each],
            "ember": ordinary[:: min(each, 50)],
            "sextant": ordinary[:: min(each, 8)],
        }.items():
            cursor.execute(RARE, {"word": word, "ids": of_them})
    return User.objects.get(pk=owners[0])


def conversations(cursor: Any, owners: list[int], first: int, last: int) -> list[Any]:
    """Write conversations of these owners; return their ids, newest first."""
    cursor.execute(CONVERSATIONS, {"owners": owners, "first": first, "last": last})
    return [row[0] for row in cursor.fetchall()]


def say(cursor: Any, ids: list[Any], in_one: int, words: list[str]) -> None:
    cursor.execute(MESSAGES, {"ids": ids, "in_one": in_one, "text": FILLER, "words": words})


@contextmanager
def indexed_afterwards() -> Iterator[None]:
    """Create the index of words after the rows are written: seconds instead of minutes."""
    with connection.schema_editor() as editor:
        editor.remove_index(Message, INDEX)
    yield
    with connection.schema_editor() as editor:
        editor.add_index(Message, INDEX)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def session() -> Iterator[Callable[[], None]]:
    """A function that switches all requests to the current database."""
    usual, other = connections["default"], connections.create_connection("default")
    other.settings_dict = deepcopy(usual.settings_dict) | {"CONN_MAX_AGE": None}
    del other.settings_dict["OPTIONS"]["pool"]
    usual.close()
    usual.close_pool()  # it would continue with this database after the next one is created

    def use() -> None:
        connections["default"] = other

    try:
        yield use
    finally:
        connections["default"] = usual
        other.close()


def requests(owner: User) -> dict[str, Asked]:
    client, key = Client(SERVER_NAME="localhost"), ApiKey.objects.issue(owner, "benchmark")[1]
    headers = {"Authorization": f"Bearer {key}"}

    def get(path: str) -> Asked:
        return lambda: client.get(f"/chat-history{path}", headers=headers)

    get("")()  # records the use of the key once a minute
    largest, usual = Conversation.objects.filter(owner=owner).order_by("-updated_at")[:2]
    kept = get(f"/{usual.pk}/messages")().json()
    body = json.dumps({"messages": [*kept, {"id": "new", "role": "user", "content": "And then?"}]})

    def put() -> Any:
        path = f"/chat-history/{usual.pk}/messages"
        return client.put(path, body, content_type="application/json", headers=headers)

    return {
        "list, 10": get("?limit=10"),
        "list, 100": get(""),
        "conversation of 500 messages": get(f"/{largest.pk}/messages"),
        "save a conversation, nothing new": put,
        "search, word of one old message": get("/search?q=periscope"),
        "search, word of 20 conversations": get("/search?q=lantern"),
        "search, the same, heavy: of every 50th": get("/search?q=ember"),
        "search, the same, heavy: of every 8th": get("/search?q=sextant"),
        "search, word of every message": get("/search?q=committee"),
        "search, beginning of such a word": get("/search?q=com"),
        "search, word of 99,000 others' messages": get(f"/search?q={OTHERS_WORD}"),
        "search, word of 900,000 (heavy: their own)": get(f"/search?q={HEAVY_WORD}"),
        "search, word of no message": get("/search?q=zeppelin"),
    }


def compare(owners: list[tuple[Callable[[], None], User]]) -> None:
    asked = []
    for use, owner in owners:
        use()
        asked.append(requests(owner))
    print(f"{'queries; p50, p95 in ms, and their ratios':42}" + "".join(f"{who:>28}" for who in WHO))
    for name in asked[0]:
        queries, times = [], [[] for _ in owners]
        for (use, _), of_owner in zip(owners, asked, strict=True):
            use()
            queries.append(statements(of_owner[name]))
        for _ in range(REPEATED):
            for (use, _), of_owner, row in zip(owners, asked, times, strict=True):
                use()
                row.append(measured(of_owner[name]))
        report(name, queries, [quantiles(row, n=20) for row in times])


def report(name: str, queries: list[int], cuts: list[list[float]]) -> None:
    cells = []
    for number, (p50, p95) in zip(queries, [(row[9], row[18]) for row in cuts], strict=True):
        cells.append(f"{number:6};{p50:6.0f},{p95:5.0f}; {p50 / cuts[0][9]:4.2f},{p95 / cuts[0][18]:5.2f}")
    print(f"{name:42}" + "".join(cells), flush=True)


def statements(asked: Asked) -> int:
    """The number of queries of one request, after an equal request has filled the caches."""
    asked()
    with patch.object(CursorWrapper, "execute", autospec=True, side_effect=CursorWrapper.execute) as executed:
        asked()
    return executed.call_count


def measured(asked: Asked) -> float:
    """The milliseconds of one request."""
    started = time.perf_counter()
    response = asked()
    len(response.content)
    assert response.status_code == 200, response.content
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
