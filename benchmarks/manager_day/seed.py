"""Fill a site's database with two months of an organisation, for the day of a content manager (day.py).

    CHATSITE_DATA_DIR=/tmp/day-data PORT=8941 .venv/bin/python manage.py up        # and, beside it:
    CHATSITE_DATA_DIR=/tmp/day-data .venv/bin/python manage.py shell < benchmarks/manager_day/seed.py

Creates 10,000 documents of two passages each in 202 folders, with the rights of groups; 5,000 people in 200
groups; and 100,000 questions from 60 days in 50,000 conversations. Most questions are answered; others find
nothing, are marked bad, or are asked again. Documents have files, passages and vectors as if they had been
read, and the product counts the figures. CHATSITE_SEED_SHARE=0.01 creates a hundredth. The database must have
the demo accounts; the new accounts get the password of `admin`. `carla` manages content and is not a
superuser; `paula` has asked 100 questions and owns documents that others read.
"""

import hashlib
import os
import time
from datetime import timedelta

from django.contrib.auth.models import Group, Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from chat.llm.chat_model import NOTHING_FITS
from chat.overview.counting import count_ended_runs
from chat.overview.models import CountedUntil
from chat.quoting.quoted_answer import UNSURE
from chatsite.accounts.models import User
from chatsite.db.threads import reading_everything
from ingestion.access.lists import Audience, access_list_for
from ingestion.access.models import AccessList
from ingestion.document_identity import origin_of
from ingestion.indexing.passages import NewPassage
from ingestion.indexing.replacing import prepare, write_passages
from ingestion.models import Document, Passage

SHARE = float(os.environ.get("CHATSITE_SEED_SHARE", "1"))
PEOPLE, QUESTIONS, DAYS = round(5_000 * SHARE), round(100_000 * SHARE), 60
ARCHIVED = 300  # notices in one folder, which the manager retires in one step
COMMIT_EVERY = 200  # documents in one transaction
BATCH = 20_000  # conversations in one statement

DEPARTMENTS = [
    "Harbour Operations",
    "Customer Service",
    "Finance",
    "Human Resources",
    "IT",
    "Legal",
    "Maintenance",
    "Marketing",
    "Procurement",
    "Safety",
    "Sales",
    "Security",
    "Terminal Planning",
    "Training",
    "Travel",
    "Warehouse",
    "Fleet",
    "Catering",
    "Facilities",
    "Communications",
]
SITES = [
    "Hamburg",
    "Bremen",
    "Kiel",
    "Rostock",
    "Lübeck",
    "Emden",
    "Cuxhaven",
    "Stralsund",
    "Wismar",
    "Flensburg",
]
SUBJECTS = [
    "parking permits",
    "forklift licences",
    "night shifts",
    "protective shoes",
    "fire drills",
    "business trips",
    "visitor badges",
    "company phones",
    "overtime hours",
    "crane inspections",
    "spare parts",
    "first aid kits",
    "waste sorting",
    "remote work",
    "training budgets",
    "lost property",
]
KINDS = {
    "Rules for": "These rules hold for all shifts. Each exception is noted by the head of {department}.",
    "How to request": "Requests go to the desk of {department} in {site}, which answers within {days} days.",
    "Checklist for": "Tick each line, sign the list, and hand it in by the {days}th of the month.",
}
CHARGING = "traction-battery-infrastructure.md", "Traction battery infrastructure", (
    "Wallboxes for battery vehicles of employees are on level 2 of car park P3. They are switched on with"
    " the staff badge and cost 32 cents a kilowatt-hour, which are deducted from the pay of the next month.",
    "A battery vehicle may occupy a wallbox for at most four hours. Then it is moved to an ordinary place.",
)  # fmt: skip
# Questions without an answer in the documents, the most frequent first, each in four wordings.
VAIN = [
    "charge my electric car",
    "lease a bicycle",
    "get a locker",
    "bring my dog",
    "book a massage",
    "borrow a projector",
    "order vegan lunch",
    "join the choir",
    "get a parking refund",
    "swap my desk",
    "use the prayer room",
    "store my surfboard",
    "get concert tickets",
    "print a poster",
    "rent a van",
    "learn Danish",
    "donate blood",
    "recycle batteries",
    "play table tennis",
    "get a flu vaccination",
    "wash my overalls",
    "send private parcels",
    "see the pension statement",
    "buy old laptops",
    "reserve the barbecue place",
    "get a second monitor",
    "change my surname",
    "adopt a plant",
    "join the fire brigade",
    "sell my boat",
]
WORDINGS = ("Where can I {}?", "How do I {} at work?", "Can I {} here?", "Who helps me to {}?")
MANAGER_MAY = [
    "view_user",
    "view_group",
    "view_document",
    "change_document",
    "delete_document",
    "add_document",
    "view_unanswered",
    "view_figures",
    "view_as_others",
    "view_auditentry",
    "add_proofrun",
    "view_proofrun",
    "delete_proofrun",
]
MANAGER_KEEPS = ["verifiedanswer", "verifiedquestion", "verifiedcitation", "houseword", "proofquestion"]

CONVERSATIONS = """
    INSERT INTO history_conversation
        (id, owner_id, title, title_by_owner, mode, listed, scope, created_at, updated_at, seen_at, search)
    SELECT md5('c' || number)::uuid, owner, title, false, 'standard', true, '', asked_at, asked_at, asked_at,
        array_to_tsvector(
            array['owner:' || owner] || array_remove(regexp_split_to_array(lower(title), '\\W+'), ''))
    FROM generate_series(%(first)s, %(last)s) AS number,
        LATERAL (SELECT
            %(start)s::timestamptz + number * %(step)s AS asked_at,
            CASE WHEN number %% 1000 = 7 AND number < 50000 THEN %(leaver)s
                ELSE (%(people)s::bigint[])[1 + number::bigint * 7919 %% cardinality(%(people)s::bigint[])]
            END AS owner,
            left((%(texts)s::text[])[number * 2 - %(first)s * 2 + 1], 60) AS title
        ) AS made
"""
# Two questions a conversation. In every fifth conversation, the second one follows within two minutes.
MESSAGES = """
    INSERT INTO history_message
        (id, conversation_id, position, role, content, state, finish_reason, error_code, request_id,
        agent_name, imported, content_type, citations, labels, followups, thoughts, usage, exchange,
        created_at, finished_at, searched_count, search)
    SELECT md5(said.role || question)::uuid, conversation.id, turn * 2 + said.place, said.role, said.content,
        'complete', CASE said.place WHEN 1 THEN 'stop' ELSE '' END, '', '', '', false, '',
        CASE WHEN said.place = 1 AND outcome = 'answered' THEN jsonb_build_array(document.label)
            ELSE '[]' END,
        '[]', '[]', '[]',
        CASE said.place WHEN 1 THEN '{"prompt": 1800, "completion": 240}' ELSE '{}' END::jsonb,
        md5('run' || question)::uuid, asked_at,
        CASE said.place WHEN 1 THEN asked_at + interval '8 seconds' END,
        10000, array_to_tsvector(
            array['owner:' || conversation.owner_id]
            || array_remove(regexp_split_to_array(left(lower(said.content), 400), '\\W+'), ''))
    FROM generate_series(%(first)s, %(last)s) AS number
    JOIN history_conversation AS conversation ON conversation.id = md5('c' || number)::uuid,
        generate_series(0, 1) AS turn,
        LATERAL (SELECT number * 2 + turn AS question) AS asked,
        LATERAL (SELECT
            (%(outcomes)s::text[])[question - %(first)s * 2 + 1] AS outcome,
            conversation.created_at
                + turn * CASE WHEN number %% 5 = 0 THEN interval '90 seconds' ELSE interval '9 minutes' END
                AS asked_at
        ) AS answer
    JOIN LATERAL (
        SELECT label, content FROM seed_document
        WHERE seed_document.place = (%(about)s::int[])[question - %(first)s * 2 + 1]
    ) AS document ON true,
        LATERAL (VALUES
            (0, 'user', (%(texts)s::text[])[question - %(first)s * 2 + 1]),
            (1, 'assistant', CASE outcome
                WHEN 'refused' THEN %(nothing)s
                WHEN 'unsure' THEN %(unsure)s || E'\\n\\n> ' || document.content
                ELSE document.content || ' [' || document.label || ']'
            END)
        ) AS said (place, role, content)
"""
RUNS = """
    INSERT INTO chat_run (id, owner_id, conversation_id, question_id, answer_id, options, body_digest,
        stop_requested, created_at, finished_at, last_event, first_word_ms)
    SELECT md5('run' || question)::uuid, conversation.owner_id, conversation.id,
        md5('user' || question)::uuid, md5('assistant' || question)::uuid, '{}', '', false, asked.created_at,
        asked.created_at + interval '8 seconds', 9, 400 + question %% 5000
    FROM generate_series(%(first)s * 2, %(last)s * 2 + 1) AS question
    JOIN history_message AS asked ON asked.id = md5('user' || question)::uuid
    JOIN history_conversation AS conversation ON conversation.id = asked.conversation_id
"""
SOURCES = """
    INSERT INTO history_source (message_id, document_id, document_version, passage_id, rank, label, title,
        heading, content, quotes, captions, given, score, found_by)
    SELECT md5('assistant' || question)::uuid, document.id, 1, document.passage, 1, document.label,
        document.title, '', document.content, '[]', '[]', 'text', 0.9, 'both'
    FROM generate_series(%(first)s * 2, %(last)s * 2 + 1) AS question
    JOIN seed_document AS document ON document.place = (%(about)s::int[])[question - %(first)s * 2 + 1]
    WHERE (%(outcomes)s::text[])[question - %(first)s * 2 + 1] <> 'refused'
"""
FEEDBACK = """
    INSERT INTO history_feedback
        (message_id, rating, reasons, wrong_sources, comment, shared, created_at, updated_at)
    SELECT md5('assistant' || question)::uuid, CASE WHEN question %% 3 = 0 THEN 'bad' ELSE 'good' END,
        CASE WHEN question %% 3 = 0 THEN '["outdated"]' ELSE '[]' END::jsonb, '[]', '', question %% 2 = 0,
        asked.created_at, asked.created_at
    FROM generate_series(%(first)s * 2, %(last)s * 2 + 1) AS question
    JOIN history_message AS asked ON asked.id = md5('user' || question)::uuid
    WHERE question %% 20 = 3
"""


def main() -> None:
    begun = time.perf_counter()
    with reading_everything(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', '0', false)")
        groups = make_people()
        print(f"{User.objects.count():,} people after {time.perf_counter() - begun:.0f} s", flush=True)
        make_documents(groups, begun)
        make_questions()
        print(f"{QUESTIONS:,} questions after {time.perf_counter() - begun:.0f} s", flush=True)
        # The worker has counted up to the present, but the inserted answers ended earlier.
        CountedUntil.objects.all().delete()
        counted = count_ended_runs(seconds=3_600)
        cursor.execute("ANALYZE")
        print(f"{counted:,} questions counted after {time.perf_counter() - begun:.0f} s", flush=True)


def make_people() -> dict[tuple[str, str], Group]:
    """The groups by department and site, and people in one to three of them."""
    names = [(department, site) for site in SITES for department in DEPARTMENTS]
    made = Group.objects.bulk_create(Group(name=f"{department} {site}") for department, site in names)
    groups = dict(zip(names, made, strict=True))
    managers = Group.objects.create(name="Content managers")
    permissions = Q(codename__in=MANAGER_MAY)
    for model in MANAGER_KEEPS:
        permissions |= Q(codename__endswith=f"_{model}", content_type__model=model)
    managers.permissions.set(Permission.objects.filter(permissions))
    password = User.objects.get(username="admin").password
    carla = User.objects.create(
        username="carla", first_name="Carla", last_name="Content", is_staff=True, password=password
    )
    carla.groups.set([managers, groups["Facilities", "Hamburg"]])
    paula = User.objects.create(username="paula", first_name="Paula", last_name="Leaver", password=password)
    paula.groups.set([groups["Facilities", "Hamburg"], groups["Travel", "Hamburg"]])
    people = User.objects.bulk_create(
        User(
            username=f"person{number}",
            first_name=("Anna", "Ben", "Cem", "Dora", "Emil")[number % 5],
            last_name=f"No. {number}",
            password=password,
        )
        for number in range(PEOPLE)
    )
    memberships = User.groups.through
    memberships.objects.bulk_create(
        memberships(user_id=person.pk, group_id=made[place].pk)
        for number, person in enumerate(people)
        for place in {number % len(made), (number * 7 + 3) % len(made)}
    )
    return groups


def make_documents(groups: dict[tuple[str, str], Group], begun: float) -> None:
    owner = User.objects.get(username="admin")
    everyone = access_list_for(Audience(everyone=True), owner.pk)
    rows: list[tuple[str, str, str, str, AccessList, tuple[str, ...]]] = []
    for (department, site), group in groups.items():
        own = access_list_for(Audience(group_ids=frozenset({group.pk})), owner.pk)
        for number, subject in enumerate(SUBJECTS):
            for kind, text in KINDS.items():
                days = 2 + (number * 7 + len(department) + len(site)) % 25
                first = (
                    f"{kind} {subject} of {department} in {site}. {subject.capitalize()} are given out on "
                    f"{('Mondays', 'Tuesdays', 'Thursdays')[number % 3]} and hold for {days} months."
                )
                title = f"{kind} {subject}, {department} {site}"
                name = f"{title.lower().replace(',', '').replace(' ', '-')}.md"
                readers = everyone if kind == "How to request" else own
                passages = first, text.format(department=department, site=site, days=days)
                rows.append((f"{department}/{site}", department, name, title, readers, passages))
    rows = rows[: round(len(rows) * SHARE)]
    for number in range(ARCHIVED):
        title = f"Notice {number + 1} of 2019"
        text = (
            f"Gate {number % 9 + 1} stays closed in week {number % 52 + 1} of 2019 for repairs of the rails."
        )
        rows.append(("Archive/2019", "Notices", f"notice-2019-{number + 1}.md", title, everyone, (text,)))
    for number in range(99):
        title = f"House letter {number + 1}"
        text = (
            f"In house letter {number + 1} the board thanks all crews for a season of {number + 200} calls."
        )
        rows.append(("Company", "Letters", f"house-letter-{number + 1}.md", title, everyone, (text,)))
    rows.append(("Company", "Facilities", CHARGING[0], CHARGING[1], everyone, CHARGING[2]))
    for first in range(0, len(rows), COMMIT_EVERY):
        with transaction.atomic():
            for row in rows[first : first + COMMIT_EVERY]:
                make_document(owner, *row)
        if first % 2_000 == 0:
            print(f"  {first:,} documents after {time.perf_counter() - begun:.0f} s", flush=True)
    paula = User.objects.get(username="paula")
    for number in range(5):
        text = f"Paula's list {number} of hotels near the harbour, with prices of the last season."
        make_document(paula, "", "Travel", f"hotels-{number}.md", f"Hotels {number}", everyone, (text,))


def make_document(
    owner: User,
    folder: str,
    category: str,
    name: str,
    title: str,
    readers: AccessList,
    passages: tuple[str, ...],
) -> None:
    content = "\n\n".join((f"# {title}", *passages)).encode()
    digest = hashlib.sha256(content).hexdigest()
    document = Document.objects.create(
        owner=owner,
        origin=origin_of(owner),
        access_list=readers,
        folder=folder,
        category=category,
        name=name,
        title=title,
        language="english",
        file=default_storage.save(f"documents/{digest[:2]}/{digest[:32]}", ContentFile(content)),
        media_type="text/markdown",
        size=len(content),
        sha256=digest,
        version=1,
        status=Document.Status.READY,
    )
    new = [NewPassage(f"part-{place + 1}", None, "", text) for place, text in enumerate(passages)]
    write_passages(document, new, prepare(document, new, title))


def make_questions() -> None:
    people = User.objects.filter(username__startswith="person").values_list("pk", flat=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE seed_document (place int PRIMARY KEY, id bigint,"
                       " passage bigint, label text, title text, content text)")  # fmt: skip
        known = Passage.objects.filter(position=0, document__folder__gt="").select_related("document")
        documents = list(known.order_by("document_id"))
        cursor.executemany(
            "INSERT INTO seed_document VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (
                    place,
                    each.document_id,
                    each.pk,
                    f"{each.document.name}#{each.anchor}",
                    each.document.title,
                    each.content,
                )
                for place, each in enumerate(documents)
            ],
        )
        titles = [each.document.title for each in documents]
        conversations = QUESTIONS // 2
        for first in range(0, conversations, BATCH):
            last = min(first + BATCH, conversations) - 1
            asked = [question(number, titles) for number in range(first * 2, last * 2 + 2)]
            parameters = {
                "first": first,
                "last": last,
                "start": timezone.now() - timedelta(days=DAYS - 0.02),
                "step": timedelta(days=DAYS - 0.1) / conversations,
                "people": list(people),
                "leaver": User.objects.get(username="paula").pk,
                "texts": [text for text, _, _ in asked],
                "outcomes": [outcome for _, outcome, _ in asked],
                "about": [about for _, _, about in asked],
                "nothing": NOTHING_FITS,
                "unsure": UNSURE,
            }
            for statement in (CONVERSATIONS, MESSAGES, RUNS, SOURCES, FEEDBACK):
                cursor.execute(statement, parameters)


def question(number: int, titles: list[str]) -> tuple[str, str, int]:
    """The text of a question, its outcome, and the document that it is about; the same in each run."""
    chance = int.from_bytes(hashlib.blake2b(str(number).encode(), digest_size=8).digest())
    about = chance % 97 * (chance // 97 % 101) % len(titles)
    if chance % 100 < 88:
        kind, _, rest = titles[about].partition(" for ")
        return f"When are {rest or titles[about]} given out, by {kind.lower()}?", "answered", about
    outcome = "refused" if chance % 2 else "unsure"
    if chance % 100 < 91:  # asked by one person only
        return f"What is the number of locker {chance % 99_991} in {SITES[chance % 10]}?", outcome, about
    rank = int(len(VAIN) * (chance // 101 % 1_000 / 1_000) ** 3)  # the first are the most frequent
    return WORDINGS[chance // 7 % 4].format(VAIN[rank]), outcome, about


main()
