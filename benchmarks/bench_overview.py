"""The time of the admin's first page for a month with a million messages, and the time of counting.

    .venv-dev/bin/python benchmarks/bench_overview.py [messages]      1,000,000 by default

A separate database has 5,000 people, each in two of 50 groups, 10,000 documents, and half as many questions
as messages, spread over 30 days, each with one answer and one source. Rows are made by SQL. A signed-in
manager requests the page with Django's test client; the time is that of the whole request without the
network.
"""

import sys
import time
from datetime import timedelta
from statistics import median

from collections_bench import empty_database

# isort: split
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import override_settings
from django.utils import timezone

from chat.overview.counting import count_ended_runs
from chatsite.accounts.models import User
from chatsite.db.threads import reading_everything
from ingestion.access.lists import Audience, access_list_for
from ingestion.models import Document

SIZE = 1_000_000
PEOPLE, GROUPS, DOCUMENTS, DAYS = 5_000, 50, 10_000, 30
BATCH = 50_000
TIMES = 20
# The benchmark does not run `collectstatic`.
PLAIN = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
STORAGES = {**settings.STORAGES, "staticfiles": PLAIN}
CONVERSATIONS = """
    INSERT INTO history_conversation
        (id, owner_id, title, title_by_owner, mode, listed, scope, created_at, updated_at)
    SELECT md5('c' || number)::uuid,
        (%(people)s::bigint[])[1 + number::bigint * 7919 %% cardinality(%(people)s::bigint[])],
        'Conversation', false, 'standard', true, '', asked_at, asked_at
    FROM generate_series(%(first)s, %(last)s) AS number,
        LATERAL (SELECT %(start)s::timestamptz + number * %(step)s AS asked_at) AS moment
"""
MESSAGES = """
    INSERT INTO history_message
        (id, conversation_id, position, role, content, state, finish_reason, error_code, request_id,
        agent_name, imported, content_type, citations, labels, followups, thoughts, usage, exchange,
        created_at)
    SELECT md5('m' || position || '-' || number)::uuid, md5('c' || number)::uuid, position,
        CASE position WHEN 0 THEN 'user' ELSE 'assistant' END,
        repeat('The committee read the report on safety and travel. ', 4),
        CASE WHEN position = 1 AND number %% 50 = 0 THEN 'failed' ELSE 'complete' END,
        'stop', '', '', '', false, '',
        CASE WHEN position = 1 AND number %% 9 > 0 THEN '["guide.md#page=1"]' ELSE '[]' END::jsonb,
        '[]', '[]', '[]',
        CASE position WHEN 1 THEN '{"prompt": 1800, "completion": 240}' ELSE '{}' END::jsonb,
        md5('r' || number)::uuid, %(start)s::timestamptz + number * %(step)s
    FROM generate_series(%(first)s, %(last)s) AS number, generate_series(0, 1) AS position
"""
RUNS = """
    INSERT INTO chat_run (id, owner_id, conversation_id, question_id, answer_id, options, body_digest,
        stop_requested, created_at, finished_at, last_event, first_word_ms)
    SELECT md5('r' || number)::uuid, conversation.owner_id, conversation.id, md5('m0-' || number)::uuid,
        md5('m1-' || number)::uuid, '{}', '', false, conversation.created_at,
        conversation.created_at + interval '8 seconds', 9, 400 + number %% 5000
    FROM generate_series(%(first)s, %(last)s) AS number
    JOIN history_conversation AS conversation ON conversation.id = md5('c' || number)::uuid
"""
SOURCES = """
    INSERT INTO history_source (message_id, document_id, document_version, passage_id, rank, label, title,
        heading, content, quotes, captions, given, score, found_by)
    SELECT md5('m1-' || number)::uuid,
        (%(documents)s::bigint[])[1 + (number * 31 %% 97) * (number %% 101)], 1, 1, 1, 'guide.md#page=1',
        'Guide', '', 'The committee read the report.', '[]', '[]', 'text', 0.9, 'both'
    FROM generate_series(%(first)s, %(last)s) AS number
"""


def main() -> None:
    questions = (int(sys.argv[1]) if sys.argv[1:] else SIZE) // 2
    with empty_database(), reading_everything(), override_settings(STORAGES=STORAGES):
        manager = people()
        begun = time.perf_counter()
        fill(questions)
        print(f"{2 * questions:,} messages after {time.perf_counter() - begun:.0f} s", flush=True)
        begun = time.perf_counter()
        counted = count_ended_runs(seconds=3_600)
        print(f"counting all {counted:,} questions: {time.perf_counter() - begun:.1f} s", flush=True)
        begun = time.perf_counter()
        count_ended_runs()
        print(f"counting again, without newly ended runs: {1000 * (time.perf_counter() - begun):.0f} ms")
        client = Client(headers={"host": "127.0.0.1"})
        client.force_login(manager)
        group = Group.objects.order_by("pk")[0].pk
        for name, path in {
            "first page, 30 days, everyone": "/admin/",
            "first page, 30 days, a group": f"/admin/?group={group}",
            "first page, 90 days, everyone": "/admin/?days=90",
            "documents as CSV": "/admin/figures/documents.csv",
        }.items():
            took = sorted(asked(client, path) for _ in range(TIMES))
            print(f"{name}: median {median(took):.0f} ms, slowest of {TIMES} {took[-1]:.0f} ms", flush=True)


def people() -> User:
    """Create the people, their groups and the documents; return a manager."""
    manager = User.objects.create(username="manager", is_staff=True)
    manager.user_permissions.add(Permission.objects.get(codename="view_figures"))
    groups = Group.objects.bulk_create([Group(name=f"Group {number}") for number in range(GROUPS)])
    others = User.objects.bulk_create([User(username=f"person{number}") for number in range(PEOPLE)])
    User.groups.through.objects.bulk_create(
        User.groups.through(user_id=person.pk, group_id=groups[place].pk)
        for number, person in enumerate(others)
        for place in {number % GROUPS, (number * 7 + 3) % GROUPS}
    )
    everyone = access_list_for(Audience(everyone=True), None)
    Document.objects.bulk_create(
        Document(
            name=f"file{number}.md",
            title=f"Document {number}",
            access_list=everyone,
            file=f"documents/bench-{number}",
            media_type="text/markdown",
            size=100,
            sha256=f"{number:064x}",
            version=1,
            status=Document.Status.READY,
        )
        for number in range(DOCUMENTS)
    )
    return manager


def fill(questions: int) -> None:
    parameters = {
        "people": list(User.objects.filter(is_staff=False).values_list("pk", flat=True)),
        "documents": list(Document.objects.values_list("pk", flat=True)),
        "start": timezone.now() - timedelta(days=DAYS - 0.5),
        "step": timedelta(days=DAYS - 0.6) / questions,
    }
    with connection.cursor() as cursor:
        for first in range(0, questions, BATCH):
            span = {"first": first, "last": min(first + BATCH, questions) - 1}
            for statement in (CONVERSATIONS, MESSAGES, RUNS, SOURCES):
                cursor.execute(statement, parameters | span)
        cursor.execute("ANALYZE")


def asked(client: Client, path: str) -> float:
    """Milliseconds of one request."""
    begun = time.perf_counter()
    response = client.get(path)
    took = 1000 * (time.perf_counter() - begun)
    assert response.status_code == 200, response.status_code
    return took


if __name__ == "__main__":
    main()
