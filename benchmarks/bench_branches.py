"""The cost of reading a conversation with forty branches, compared with the same conversation without any.

    .venv-dev/bin/python benchmarks/bench_branches.py

Two conversations of one person show the same twenty questions and answers. In the second, a question was
edited or an answer regenerated forty times, at places throughout the conversation, and each branch continues
with three more questions. Requests to the two alternate, and each time is that of the whole request. The
transaction that stores a question is rolled back.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import quantiles
from typing import Any

from collections_bench import empty_database

# isort: split
from django.conf import settings
from django.db import connection, transaction
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from chat import runs
from chat.requests import RunRequest
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from history import recording, sharing
from history.models import Conversation, Message
from ingestion.access.lists import Audience

TURNS, BRANCHES, IN_EACH = 20, 40, 3
REPEATED = 200
ANSWER = (
    "The committee read the report on **safety** and asked for figures by the end of the quarter.\n\n" * 12
)
Asked = Callable[[], Any]


def main() -> None:
    plain_files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    storages = settings.STORAGES | {"staticfiles": plain_files}
    with empty_database() as principal, override_settings(STORAGES=storages):
        plain, branched = (conversation(principal) for _ in range(2))
        branch(branched)
        connection.cursor().execute("VACUUM ANALYZE")
        number = Message.objects.filter(conversation=branched).count()
        print(f"{2 * TURNS} messages shown; stored in the second: {number}\n")
        print(f"{'p50, p95 in ms':32}{'queries':>8}{'without':>16}{'40 branches':>16}{'times':>14}")
        asked = [requests(principal, each) for each in (plain, branched)]
        for name in asked[0]:
            compare(name, [each[name] for each in asked])


def conversation(principal: Principal) -> Conversation:
    made = recording.open_conversation(principal, title="Figures")
    for number in range(TURNS):
        turn(made, f"What of figure {number}?")
    return made


def turn(made: Conversation, question: str) -> None:
    recording.append(made, Message.Role.USER, question)
    recording.append(made, Message.Role.ASSISTANT, ANSWER, state=Message.State.COMPLETE, finish_reason="stop")


def branch(made: Conversation) -> None:
    last = recording.last_position(made)
    for number in range(BRANCHES):
        place = number * last // BRANCHES
        recording.go_back(made, place)
        if Message.objects.get(conversation=made, position=place).role == Message.Role.USER:
            recording.append(made, Message.Role.ASSISTANT, ANSWER, finish_reason="stop")
        for each in range(IN_EACH):
            turn(made, f"And figure {number}, {each}?")
    recording.choose_branch(made, last)


def requests(principal: Principal, made: Conversation) -> dict[str, Asked]:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(pk=principal.user_id))
    _, token = sharing.create(principal, made.pk, Audience(everyone=True))
    page = f"/c/{made.pk}/"
    return {
        "page": partial(get, client, page),
        "messages of /chat-history": partial(get, client, f"/chat-history/{made.pk}/messages"),
        "export as Markdown": partial(get, client, f"{page}export.md"),
        "shared page": partial(get, client, f"/s/{token}/"),
        "a question is stored": partial(ask, principal, made),
    }


def get(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200, response.content


def ask(principal: Principal, made: Conversation) -> None:
    with transaction.atomic():
        runs.begin(principal, RunRequest("And then?", made.pk))
        transaction.set_rollback(True)


def compare(name: str, asked: list[Asked]) -> None:
    queries = []
    for each in asked:
        each()
        with CaptureQueriesContext(connection) as made:
            each()
        queries.append(len(made))
    times: list[list[float]] = [[] for _ in asked]
    for _ in range(REPEATED):
        for each, row in zip(asked, times, strict=True):
            started = time.perf_counter()
            each()
            row.append((time.perf_counter() - started) * 1000)
    cuts = [(cut[9], cut[18]) for cut in (quantiles(row, n=20) for row in times)]
    cells = "".join(f"{p50:9.1f},{p95:6.1f}" for p50, p95 in cuts)
    ratios = ", ".join(f"{many / few:.2f}" for few, many in zip(*cuts, strict=True))
    print(f"{name:32}{queries[0]:>4},{queries[1]:>3}{cells}{ratios:>14}", flush=True)


if __name__ == "__main__":
    main()
