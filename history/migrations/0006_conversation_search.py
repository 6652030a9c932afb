"""Index the words of titles, like those of messages, so that no search reads all titles of a person. During
the upgrade, a process of the previous version stores titles without their words; searches read titles without
words."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models
from django.db.models import Q

from history.search_words import (
    owner_word,
    words_of,
)

BATCH = 5_000
FILL = """
UPDATE history_conversation AS conversation SET search = array_to_tsvector(string_to_array(told.words, ' '))
FROM unnest(%s::uuid[], %s::text[]) AS told (id, words) WHERE conversation.id = told.id
"""


def fill(apps, schema_editor):
    rows = (
        apps.get_model("history", "Conversation").objects.filter(search=None).exclude(title="").order_by("pk")
    )
    last = None
    while batch := list(
        (rows if last is None else rows.filter(pk__gt=last)).values_list("pk", "owner_id", "title")[:BATCH]
    ):
        last = batch[-1][0]
        words = [" ".join([*words_of(title), owner_word(owner)]) for _, owner, title in batch]
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(FILL, [[pk for pk, _, _ in batch], words])


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0005_source_captions_and_ranker"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="search",
            field=django.contrib.postgres.search.SearchVectorField(
                editable=False, help_text="The words of its title, and whose they are.", null=True
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="conversation",
            index=django.contrib.postgres.indexes.GinIndex(fields=["search"], name="conversation_search"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=Q(("search__isnull", True), models.Q(("title", ""), _negated=True)),
                fields=["owner"],
                name="conversation_without_words",
            ),
        ),
    ]
