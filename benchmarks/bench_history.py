"""How long /chat-history takes, and with how many queries, as conversations grow.

    python benchmarks/bench_history.py [messages …]      1,000 and 1,000,000 unless told

The messages are 20 to a conversation, and all have the same words. The first reader has a thousand of them,
with one conversation of 500; the others are those of 1,000 people. The second reader has half of all himself.
Times are of the whole request, from the client's call to the read body.
"""

import json
import sys
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any
from unittest.mock import patch

from collections_bench import empty_database

# isort: split
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test import Client

from chatsite.accounts.models import ApiKey, User
from history.models import Conversation

SIZES = (1_000, 1_000_000)
IN_ONE, IN_LARGEST, OF_ONE = 20, 500, 1_000
PEOPLE = 1_000
REPEATED = 30
BATCH = 2_000  # conversations of one statement
WORDS = """
    the committee read report on safety and travel asked for figures by end of quarter message
"""
CONVERSATIONS = """
    INSERT INTO history_conversation
        (id, owner_id, title, title_by_owner, mode, listed, created_at, updated_at)
    SELECT gen_random_uuid(), (%(owners)s::bigint[])[1 + number %% cardinality(%(owners)s::bigint[])],
        'Conversation ' || number, false, 'standard', true, now(), now() - number * interval '1 second'
    FROM generate_series(1, %(count)s) AS number RETURNING id
"""
MESSAGES = """
    INSERT INTO history_message
        (id, conversation_id, position, role, content, state, finish_reason, error_code, request_id,
        agent_name, imported, content_type, citations, followups, thoughts, usage, created_at, search)
    SELECT gen_random_uuid(), id, position, CASE position %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
        'Message ' || position || '. ' || repeat(%(text)s, 3), 'complete', 'stop', '', '', '',
        false, '', '[]', '[]', '[]', '{}', now(),
        array_to_tsvector(%(words)s::text[] || ('owner:' || owner_id)
            || CASE WHEN random() < 0.001 THEN ARRAY['lantern'] ELSE '{}' END)
    FROM history_conversation, generate_series(0, %(in_one)s - 1) AS position WHERE id = ANY(%(ids)s)
"""
FILLER = (
    "The committee read the report on safety and travel, and asked for figures by the end of the quarter. "
)
Asked = Callable[[], Any]


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print(f"{'messages':>10}  {'request':52}{'queries':>8}{'p50 ms':>8}{'p95 ms':>8}")
    for size in sizes:
        with empty_database() as principal:
            usual = User.objects.get(pk=principal.user_id)
            heavy = User.objects.create_user("heavy")
            largest = fill([usual], OF_ONE - IN_LARGEST, with_largest=True)
            if size > OF_ONE:
                others = [User(username=f"person{number}") for number in range(PEOPLE)]
                fill([user.pk for user in User.objects.bulk_create(others)], size // 2)
                fill([heavy], size // 2 - OF_ONE)
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            for name, asked in requests(usual, largest):
                report(size, name, asked)
            if size > OF_ONE:
                for name, asked in requests(heavy, fill([heavy], 0, with_largest=True)):
                    report(size, f"{name} (of {size // 2:,})", asked)


def fill(owners: list[Any], size: int, *, with_largest: bool = False) -> Conversation:
    """`size` messages in all, and where wanted the largest conversation, which is the newest."""
    numbers = [getattr(owner, "pk", owner) for owner in owners]
    with connection.cursor() as cursor:
        cursor.execute(CONVERSATIONS, {"owners": numbers, "count": size // IN_ONE})
        say(cursor, [row[0] for row in cursor.fetchall()], IN_ONE)
        if with_largest:
            cursor.execute(CONVERSATIONS, {"owners": numbers, "count": 1})
            say(cursor, [row[0] for row in cursor.fetchall()], IN_LARGEST)
    return Conversation.objects.filter(owner__in=numbers).latest("updated_at")


def say(cursor: Any, conversations: list[Any], in_one: int) -> None:
    for start in range(0, len(conversations), BATCH):
        told = {"ids": conversations[start : start + BATCH], "in_one": in_one, "text": FILLER}
        cursor.execute(MESSAGES, told | {"words": WORDS.split()})


def requests(owner: User, largest: Conversation) -> list[tuple[str, Asked]]:
    client, key = Client(SERVER_NAME="localhost"), ApiKey.objects.issue(owner, "benchmark")[1]
    headers = {"Authorization": f"Bearer {key}"}

    def get(path: str) -> Asked:
        return lambda: client.get(f"/chat-history{path}", headers=headers)

    get("")()  # notes that the key was used, once a minute
    usual = Conversation.objects.filter(owner=owner).earliest("updated_at")
    kept = get(f"/{usual.pk}/messages")().json()
    body = json.dumps({"messages": [*kept, {"id": "new", "role": "user", "content": "And then?"}]})

    def put() -> Any:
        path = f"/chat-history/{usual.pk}/messages"
        return client.put(path, body, content_type="application/json", headers=headers)

    return [
        ("list, 10", get("?limit=10")),
        ("list, 100", get("")),
        ("messages of the largest conversation", get(f"/{largest.pk}/messages")),
        (f"save {len(kept) + 1}, nothing new", put),
        ("search, rare word, 20", get("/search?q=lantern")),
        ("search, word of every message, 20", get("/search?q=committee")),
        ("search, beginning of every message's word", get("/search?q=com")),
        ("search, word of no message", get("/search?q=zeppelin")),
    ]


def report(size: int, name: str, asked: Asked) -> None:
    asked()
    with patch.object(CursorWrapper, "execute", autospec=True, side_effect=CursorWrapper.execute) as executed:
        response = asked()
    assert response.status_code == 200, response.content
    times = []
    for _ in range(REPEATED):
        started = time.perf_counter()
        len(asked().content)
        times.append((time.perf_counter() - started) * 1000)
    cuts = quantiles(times, n=20)
    print(f"{size:10,}  {name:52}{executed.call_count:8}{cuts[9]:8.1f}{cuts[18]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
