"""Reads documents in eight threads of one process, each time as another person: `python -m` this module.

Prints the number of reads, the reads that returned too many or too few documents for their reader, and the
number of server sessions that answered them.
"""

import json
import os
import random
import sys
import threading
import time
from contextlib import suppress
from uuid import uuid4

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup(set_prefix=False)

from django.db import DatabaseError, connection, transaction  # noqa: E402

from chatsite.db.threads import (  # noqa: E402
    reading_as,
    reading_everything,
)
from ingestion.access.lists import (  # noqa: E402
    Audience,
    access_list_for,
)
from ingestion.models import Document, Passage  # noqa: E402
from ingestion.tests.factories import make_user  # noqa: E402

THREADS, LOOKS, PEOPLE, OWN = 8, 200, 10, 3
FOUND = "SELECT id FROM ingestion_document"


def make_world():
    """{reader's id, or None: ids of the documents they may see}"""
    world = {None: set()}
    with reading_everything():
        for _ in range(PEOPLE):
            user = make_user(uuid4().hex)
            lists = access_list_for(Audience(), user.pk)
            documents = [
                Document.objects.create(owner=user, access_list=lists, size=1, version=1) for _ in range(OWN)
            ]
            Passage.objects.bulk_create(
                Passage(document=one, position=0, content="Text.") for one in documents
            )
            world[user.pk] = {one.pk for one in documents}
    return world


def by_model(number):
    return set(Document.objects.values_list("pk", flat=True))


def by_chunks(number):
    return {row.document_id for row in Passage.objects.all().iterator(chunk_size=2)}


def by_statement(number):
    with connection.cursor() as cursor:
        cursor.execute(f"{FOUND} WHERE size = %(size)s AND 5 %% 2 = 1", {"size": 1})
        return {pk for (pk,) in cursor.fetchall()}


def by_copy(number):
    with connection.cursor() as cursor, cursor.copy(f"COPY ({FOUND}) TO STDOUT") as copy:
        return {int(line) for line in b"".join(copy).split()}


def by_many(number):
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE ingestion_document SET size = size WHERE size = %s", [[1], [1]])
        changed = cursor.rowcount
    found = by_model(number)
    return found if changed == 2 * len(found) else {"changed", changed}


def in_a_transaction(number):
    with transaction.atomic():
        first = by_model(number)
        with suppress(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        found = (first, by_chunks(number), by_statement(number), by_copy(number))
    return first if all(one == first for one in found) else {"differ"}


def after_a_failure(number):
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute(f"{FOUND} WHERE 1 / (size - 1) = 1")
    connection.close()
    return by_model(number)


KINDS = (by_model, by_chunks, by_statement, by_copy, by_many, in_a_transaction, after_a_failure)


def look(seed, world, wrong, sessions):
    chance = random.Random(seed)
    for number in range(LOOKS):
        reader, kind = chance.choice(list(world)), chance.choice(KINDS)
        with reading_as(reader):
            found = kind(number)
            if found != world[reader]:
                wrong.append([kind.__name__, reader, sorted(map(str, found))])
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                sessions.update(cursor.fetchone())
        if chance.random() < 0.3:
            connection.close()
    connection.close()


def main():
    world, wrong, sessions = make_world(), [], set()
    begun = time.monotonic()
    threads = [threading.Thread(target=look, args=(seed, world, wrong, sessions)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = round(time.monotonic() - begun, 2)
    result = {"looks": THREADS * LOOKS, "wrong": wrong, "sessions": len(sessions), "seconds": seconds}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
