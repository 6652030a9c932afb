"""The chain of hashes over the audit log.

This module seals entries, verifies the chain, removes old entries and erases names. Many processes write
entries at the same time, without waiting for each other. A job of the worker seals committed entries in the
order in which it finds them: each seal contains the hash of the previous one. A sealed entry that was
changed or removed afterwards does not match the chain. A chain whose end was cut off or replaced can be
detected only with a hash that was noted elsewhere; `audit verify` prints the newest hash.
"""

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta

from django.db import connection, models, transaction
from django.utils import timezone

from chatsite.accounts.models import AuditEntry, AuditSeal

from . import record

AT_ONCE = 2_000  # entries
ERASED_AT_ONCE = 1_000  # entries
LATE = 10_000  # an entry that is committed late is still sealed unless this many newer ones were sealed first
BEGINNING = "0" * 64  # the previous hash of the first seal
LOCK = 0x6175_6469  # the advisory lock for changing seals


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification; `broken` says what does not match, if anything."""

    checked: int
    newest: str  # hash
    anonymized: list[int]  # numbers of entries from which an erased person's name was removed
    broken: str = ""


def lock() -> None:
    """Wait for other transactions that change seals, then lock the seals for this transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def seal_new() -> int:
    """Seal the committed entries that have no seal yet, and return their number (see LATE)."""
    sealed = 0
    while True:
        with transaction.atomic():
            lock()
            last = AuditSeal.objects.order_by("-position").first()
            position, before = (last.position, last.hash) if last else (0, BEGINNING)
            seals = []
            # Limit the search, so that its cost does not grow with the log.
            for entry in _unsealed().filter(pk__gt=_last_unsealable(position))[:AT_ONCE]:
                position += 1
                salt = secrets.token_hex(16)
                words = words_of(entry, salt)
                before = hash_of(before, position, entry, words)
                seals.append(
                    AuditSeal(position=position, entry=entry.pk, salt=salt, words=words, hash=before)
                )
            AuditSeal.objects.bulk_create(seals)
        if not seals:
            return sealed
        sealed += len(seals)


def _unsealed() -> models.QuerySet[AuditEntry]:
    # Not only entries after the last sealed one: an entry may be committed after others with higher numbers.
    sealed = AuditSeal.objects.filter(entry=models.OuterRef("pk"))
    return AuditEntry.objects.filter(~models.Exists(sealed)).order_by("pk")


def _last_unsealable(position: int) -> int:
    """Entries up to this number are not sealed any more once the newest seal has this position."""
    long_ago = AuditSeal.objects.filter(position=position - LATE).first()
    return long_ago.entry if long_ago else 0


def words_of(entry: AuditEntry, salt: str) -> str:
    """The digest of those parts of an entry that are removed when a person is erased."""
    return _digest([salt, entry.actor, entry.person, entry.subject])


def hash_of(before: str, position: int, entry: AuditEntry, words: str) -> str:
    moment = entry.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    stays = [entry.pk, moment, entry.action, entry.actor_id, entry.person_id, entry.request_id]
    return _digest([before, position, *stays, words])


def _digest(values: list[object]) -> str:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def verify(expected: str = "") -> Verdict:
    """Compare every seal with its entry and with the previous seal, and find entries that were never sealed.

    `expected` is a hash that was noted earlier, which the chain must still contain.
    """
    checked = 0
    anonymized = []
    newest = BEGINNING
    problem = ""
    position = 0
    is_known = not expected
    for seal, entry, previous in _sealed():
        problem = _problem(seal, entry, previous)
        if problem:
            break
        checked += entry is not None
        if entry is not None and not seal.salt:
            anonymized.append(entry.pk)
        newest = seal.hash
        is_known = is_known or seal.hash == expected
        position = seal.position
    if not problem and (added := _unsealed().filter(pk__lte=_last_unsealable(position)).first()):
        problem = f"Entry {added.pk} has no seal: it was stored after {LATE:,} newer ones had been sealed."
    if not problem and not is_known:
        problem = f"The hash {expected} is not in the chain: entries after it were rewritten or cut off."
    return Verdict(checked, newest, anonymized, problem)


def _sealed() -> Iterator[tuple[AuditSeal, AuditEntry | None, AuditSeal | None]]:
    """Yield each seal with its entry (None if it was deleted) and the previous seal, in order."""
    previous: AuditSeal | None = None
    while True:
        start = previous.position if previous else 0
        seals = list(AuditSeal.objects.filter(position__gt=start).order_by("position")[:AT_ONCE])
        if not seals:
            return
        entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
        for seal in seals:
            yield seal, entries.get(seal.entry), previous
            previous = seal


def _problem(seal: AuditSeal, entry: AuditEntry | None, previous: AuditSeal | None) -> str:
    """Why this seal does not match, as text; empty if it matches."""
    place = f"Entry {seal.entry} (position {seal.position})"
    if previous is None and entry is None:
        trimmed = AuditEntry.objects.filter(action=AuditEntry.Action.LOG_TRIMMED, subject__contains=seal.hash)
        return "" if trimmed.exists() else f"{place} is missing, and so is everything before it."
    if previous is None and seal.position != 1:
        return f"{place} is the first, but those before it were removed without a record."
    if previous is not None and seal.position != previous.position + 1:
        return f"{place} follows position {previous.position}: the seals between are missing."
    if entry is None:
        return f"{place} was deleted."
    if seal.salt and words_of(entry, seal.salt) != seal.words:
        return f"{place} was changed: its names or its subject differ from those that were sealed."
    before = previous.hash if previous else BEGINNING
    if hash_of(before, seal.position, entry, seal.words) != seal.hash:
        return f"{place} was changed, or its seal was."
    return ""


@transaction.atomic
def trim(days: int) -> int:
    """Remove the sealed entries before the first one younger than `days`; return their number.

    The seal of the last removed entry remains as the beginning of the chain; a new entry records its hash.
    """
    lock()
    border = timezone.now() - timedelta(days=days)
    young = AuditEntry.objects.filter(created_at__gte=border).values("pk")
    first_kept = AuditSeal.objects.filter(entry__in=young).order_by("position").first()
    old = AuditSeal.objects.order_by("-position")
    last = (old.filter(position__lt=first_kept.position) if first_kept else old).first()
    if last is None:
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('chatsite.trimming', 'on', true)")
        gone = AuditSeal.objects.filter(position__lte=last.position)
        removed, _ = AuditEntry.objects.filter(pk__in=gone.values("entry")).delete()
        gone.exclude(pk=last.pk).delete()
        cursor.execute("SELECT set_config('chatsite.trimming', '', true)")
    if removed:
        words = f"{removed} entries older than {days} days, up to position {last.position}: {last.hash}"
        record(AuditEntry.Action.LOG_TRIMMED, actor=None, subject=words)
    return removed


@transaction.atomic
def forget(person_id: int) -> None:
    """Replace a person's name with their number in all entries.

    Entries by or about the person also lose their subject. In subjects of other entries, only names marked as
    this person's are replaced (see NamedPerson); other text with the same words stays.
    """
    lock()
    own = models.Q(actor_id=person_id) | models.Q(person_id=person_id)
    named = models.Q(named__contains=[{"person": person_id}])
    found = list(AuditEntry.objects.filter(own | named).order_by("pk"))
    number = f"person {person_id}"
    for entry in found:
        if entry.actor_id == person_id:
            entry.actor = number
        if entry.person_id == person_id:
            entry.person = number
        if person_id in (entry.actor_id, entry.person_id):
            entry.subject, entry.named = "", []
            continue
        places = []
        shift = 0  # by how much replaced names have shifted the positions after them
        for place in entry.named:
            start, end = place["start"] + shift, place["end"] + shift
            if place["person"] == person_id:
                entry.subject = entry.subject[:start] + number + entry.subject[end:]
                shift += len(number) - (end - start)
            else:
                places.append(place | {"start": start, "end": end})
        entry.named = places
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('chatsite.erasing', 'on', true)")
        columns = ["actor", "person", "subject", "named"]
        AuditEntry.objects.bulk_update(found, columns, batch_size=ERASED_AT_ONCE)
        AuditSeal.objects.filter(entry__in=[entry.pk for entry in found]).update(salt="")
        cursor.execute("SELECT set_config('chatsite.erasing', '', true)")
