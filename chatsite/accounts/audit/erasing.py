"""Removes the names of an erased person from the audit log; the entries and their chain remain."""

from django.db import connection, transaction
from django.db.models import Q

from chatsite.accounts.models import AuditEntry, AuditSeal

from . import chain

BATCH = 1_000  # entries


@transaction.atomic
def forget(person_id: int) -> None:
    """Replace the person's name by their number where an entry says that it is theirs.

    Entries by or about the person also lose their subject. Of the subjects of others only the places of
    their name change; a text that merely contains the same words stays.
    """
    chain.lock()
    mine = Q(actor_id=person_id) | Q(person_id=person_id) | Q(named__contains=[{"person": person_id}])
    found = list(AuditEntry.objects.filter(mine).order_by("pk"))
    for entry in found:
        _forget_in(entry, person_id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('chatsite.erasing', 'on', true)")
        columns = ["actor", "person", "subject", "named"]
        AuditEntry.objects.bulk_update(found, columns, batch_size=BATCH)
        AuditSeal.objects.filter(entry__in=[entry.pk for entry in found]).update(salt="")
        cursor.execute("SELECT set_config('chatsite.erasing', '', true)")


def _forget_in(entry: AuditEntry, person_id: int) -> None:
    number = f"person {person_id}"
    if entry.actor_id == person_id:
        entry.actor = number
    if entry.person_id == person_id:
        entry.person = number
    if person_id in (entry.actor_id, entry.person_id):
        entry.subject, entry.named = "", []
        return
    places = []
    shift = 0  # of the places behind a name that got longer or shorter
    for place in entry.named:
        start, end = place["start"] + shift, place["end"] + shift
        if place["person"] == person_id:
            entry.subject = entry.subject[:start] + number + entry.subject[end:]
            shift += len(number) - (end - start)
        else:
            places.append(place | {"start": start, "end": end})
    entry.named = places
