"""Response times of the portal with 10,000 conversations and 500 projects, compared with ten and one.

    .venv-dev/bin/python benchmarks/bench_many_conversations.py

Requests of two people alternate, and each time is that of the whole request.
"""

from datetime import timedelta
from functools import partial

from bench_branches import Asked, compare, conversation, get
from collections_bench import empty_database

# isort: split
from django.conf import settings
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from history.models import Conversation, Project

FEW, MANY = (10, 1), (10_000, 500)


def main() -> None:
    plain_files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    storages = settings.STORAGES | {"staticfiles": plain_files}
    with empty_database(), override_settings(STORAGES=storages):
        people = [person(number, *counts) for number, counts in enumerate((FEW, MANY))]
        connection.cursor().execute("VACUUM ANALYZE")
        print(f"{'p50, p95 in ms':32}{'queries':>8}{'ten':>16}{'10,000':>16}{'times':>14}")
        for name in people[0]:
            compare(name, [each[name] for each in people])


def person(number: int, conversations: int, projects: int) -> dict[str, Asked]:
    user = User.objects.create_user(f"person-{number}")
    shown = conversation(Principal(user.pk, "session"))
    made = Project.objects.bulk_create(Project(owner=user, name=f"Project {at}") for at in range(projects))
    now = timezone.now()
    Conversation.objects.bulk_create(
        (
            Conversation(
                owner=user,
                title=f"Figures of week {at}",
                project=made[at % len(made)] if at % 2 else None,
                updated_at=now - timedelta(hours=at),
            )
            for at in range(conversations - 1)
        ),
        batch_size=1_000,
    )
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    addresses = {
        "new question": "/",
        "a conversation": f"/c/{shown.pk}/",
        "all conversations": "/search/",
        "search for a word": "/search/?q=figures",
        "palette": "/search/palette?q=week",
        "projects": "/projects/",
        "one project": f"/projects/{made[0].pk}/",
    }
    return {name: partial(get, client, address) for name, address in addresses.items()}


if __name__ == "__main__":
    main()
