"""Mark the names of accounts in the subjects of older audit entries, so that erasing can remove them. Only
words in the place of a reader or a new owner are marked, and only if an account with this name existed then.
A name that is also the name of a group is not marked."""

import re

from django.db import migrations

READERS = ("rights_changed", "members_changed")
_HEAD = re.compile(r"(?:\([0-9a-f-]{36}\)|^project [0-9a-f-]{36}): ")
_HANDED_OVER = re.compile(r"(?:^Handed over .*\([0-9a-f-]{36}\) to |^person \d+: .*; handed over to )(\S+)$", re.DOTALL)
_NAME = re.compile(r"(?:^|(?<=, )|(?<= → ))[\w.@+-]+(?=$|, | → | and \d+ more)")
BATCH = 1_000


def places_of(action, subject):
    """(start, end) of each word that is in the place of a name."""
    if action in READERS:
        heads = list(_HEAD.finditer(subject))
        if not heads:
            return []
        start = heads[-1].end()  # a document's own name may look like one
        return [(start + found.start(), start + found.end()) for found in _NAME.finditer(subject[start:])]
    found = _HANDED_OVER.search(subject)
    return [found.span(1)] if found else []


def mark(apps, schema_editor):
    entries = apps.get_model("accounts", "AuditEntry").objects
    accounts = apps.get_model("accounts", "User").objects
    groups = {"Nobody", *apps.get_model("auth", "Group").objects.values_list("name", flat=True)}
    people = {name: (pk, joined) for name, pk, joined in accounts.values_list("username", "pk", "date_joined")}
    old = entries.filter(action__in=[*READERS, "document_changed", "person_erased"], named=[]).order_by("pk")
    marked = []
    for entry in old.only("pk", "action", "subject", "created_at").iterator(chunk_size=BATCH):
        named = []
        for start, end in places_of(entry.action, entry.subject):
            name = entry.subject[start:end]
            person, joined = people.get(name, (None, None))
            if person is not None and name not in groups and joined <= entry.created_at:
                named.append({"person": person, "start": start, "end": end})
        if named:
            entry.named = named
            marked.append(entry)
    schema_editor.execute("SELECT set_config('chatsite.erasing', 'on', true)")
    entries.bulk_update(marked, ["named"], batch_size=BATCH)
    schema_editor.execute("SELECT set_config('chatsite.erasing', '', true)")


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0035_audit_of_portal"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
