"""How long /chat-history takes, and with how many queries, as conversations grow.

    python benchmarks/bench_history.py [messages …]      1,000 and 100,000 unless told

One person has the messages, 20 to a conversation and up to 1,000 in the largest; somebody else has as many,
with the same words. Times are of the whole request, from the client's call to the read body.
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from statistics import quantiles
from typing import Any
from unittest.mock import patch

from collections_bench import empty_database

# isort: split
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.utils import timezone

from chatsite.accounts.models import ApiKey, User
from history.indexing import search_vector
from history.models import Conversation, Message

SIZES = (1_000, 100_000)
IN_ONE, IN_LARGEST = 20, 1_000
REPEATED = 30
BATCH = 2_000
FILLER = (
    "The committee read the report on safety and travel, and asked for figures by the end of the quarter. "
)
Asked = Callable[[], Any]


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print(f"{'messages':>10}  {'request':44}{'queries':>8}{'p50 ms':>8}{'p95 ms':>8}")
    for size in sizes:
        with empty_database() as principal:
            reader = User.objects.get(pk=principal.user_id)
            for owner in (reader, User.objects.create_user("somebody-else")):
                largest = fill(owner, size)
                if owner == reader:
                    mine = largest
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            for name, asked in requests(reader, mine):
                report(size, name, asked)


def fill(owner: User, size: int) -> Conversation:
    """`size` messages; gives the largest conversation. One message in a thousand has the word “lantern”."""
    now, number = timezone.now(), 0
    largest = None
    rows: list[Message] = []
    while number < size:
        count = IN_ONE if largest else min(IN_LARGEST, size // 2)
        conversation = Conversation.objects.create(
            owner=owner, title=f"Conversation {number}", updated_at=now - timedelta(minutes=number)
        )
        largest = largest or conversation
        for position in range(count):
            rare = " lantern" if number % 1_000 == 7 else ""
            text = f"Message {number}.{rare} {FILLER * 5}"
            role = Message.Role.ASSISTANT if position % 2 else Message.Role.USER
            vector = search_vector(owner.pk, text)
            rows.append(
                Message(conversation=conversation, position=position, role=role, content=text, search=vector)
            )
            number += 1
        if len(rows) >= BATCH or number >= size:
            Message.objects.bulk_create(rows, batch_size=BATCH)
            rows = []
    assert largest is not None
    return largest


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
    print(f"{size:10,}  {name:44}{executed.call_count:8}{cuts[9]:8.1f}{cuts[18]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
