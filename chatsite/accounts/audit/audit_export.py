"""Exports the audit log as CSV and as OCSF events (Open Cybersecurity Schema Framework).

https://schema.ocsf.io/1.5.0/ defines the classes and their fields.
"""

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TextIO

from django.utils.translation import override

from chatsite.accounts.models import AuditEntry, AuditSeal
from chatsite.http.csv_cells import plain

OCSF_VERSION = "1.5.0"
PRODUCT = {"name": "chatsite", "vendor_name": "chatsite"}
INFORMATIONAL, MEDIUM = 1, 3
SUCCESS, FAILURE = 1, 2
ACCOUNT, AUTHENTICATION, ENTITY, RESOURCES = 3001, 3002, 3004, 6001  # class_uid
NAMES = {ACCOUNT: "Account Change", AUTHENTICATION: "Authentication", ENTITY: "Entity Management"}
NAMES[RESOURCES] = "Web Resources Activity"
CATEGORIES = {3: "Identity & Access Management", 6: "Application Activity"}  # category_uid
CREATE, READ, UPDATE, DELETE, SEARCH, EXPORT, SHARE = 1, 2, 3, 4, 5, 7, 8
LOGON, LOGOFF = 1, 2
PASSWORD_RESET, ACCOUNT_DELETED, OTHER = 4, 6, 99

Action = AuditEntry.Action
# The class and activity of each action, and the type of its subject.
CLASSES: dict[str, tuple[int, int, str]] = {
    Action.EXPLAIN_ACCESS: (RESOURCES, READ, "access"),
    Action.SEARCH_AS: (RESOURCES, SEARCH, "documents"),
    Action.RIGHTS_CHANGED: (ENTITY, UPDATE, "document rights"),
    Action.KEY_MADE: (ENTITY, CREATE, "API key"),
    Action.KEYS_REVOKED: (ENTITY, DELETE, "API key"),
    Action.PASSWORD_SET: (ACCOUNT, PASSWORD_RESET, "password"),
    Action.SIGN_IN_REFUSED: (AUTHENTICATION, LOGON, "session"),
    Action.CONVERSATION_READ: (RESOURCES, READ, "conversation"),
    Action.CONVERSATIONS_LISTED: (RESOURCES, READ, "conversations"),
    Action.FEEDBACK_READ: (RESOURCES, READ, "feedback"),
    Action.FEEDBACK_LISTED: (RESOURCES, READ, "feedback"),
    Action.SHARES_LISTED: (RESOURCES, READ, "shared links"),
    Action.SHARE_READ: (RESOURCES, READ, "shared link"),
    Action.SHARE_CREATED: (ENTITY, CREATE, "shared link"),
    Action.SHARE_RENEWED: (ENTITY, UPDATE, "shared link"),
    Action.SHARE_REVOKED: (ENTITY, DELETE, "shared link"),
    Action.VERIFIED_CHANGED: (ENTITY, UPDATE, "verified answer"),
    Action.UNANSWERED_LISTED: (RESOURCES, READ, "questions"),
    Action.UNANSWERED_DISMISSED: (ENTITY, UPDATE, "questions"),
    Action.WORDS_CHANGED: (ENTITY, UPDATE, "glossary entry"),
    Action.EVALUATION_CHANGED: (ENTITY, UPDATE, "evaluation question"),
    Action.EVALUATION_STARTED: (RESOURCES, SEARCH, "documents"),
    Action.EVALUATION_READ: (RESOURCES, READ, "evaluation run"),
    Action.PERSON_EXPORTED: (RESOURCES, EXPORT, "person"),
    Action.PERSON_ERASED: (ACCOUNT, ACCOUNT_DELETED, "person"),
    Action.ACTED_FOR: (RESOURCES, OTHER, "rights of a person"),
    Action.SERVICE_CREATED: (ACCOUNT, OTHER, "account"),
    Action.HOLD_CHANGED: (ENTITY, UPDATE, "legal hold"),
    Action.SIGN_IN: (AUTHENTICATION, LOGON, "session"),
    Action.SIGN_OUT: (AUTHENTICATION, LOGOFF, "session"),
    Action.ACCOUNT_CHANGED: (ACCOUNT, OTHER, "account"),
    Action.GROUP_CHANGED: (ENTITY, UPDATE, "group"),
    Action.MAPPING_CHANGED: (ENTITY, UPDATE, "group mapping"),
    Action.IDENTITY_REMOVED: (ENTITY, DELETE, "external identity"),
    Action.ALLOWANCE_CHANGED: (ENTITY, UPDATE, "message allowance"),
    Action.RETENTION_CHANGED: (ENTITY, UPDATE, "retention rule"),
    Action.AGENT_CHANGED: (ENTITY, UPDATE, "agent"),
    Action.TEXTS_CHANGED: (ENTITY, UPDATE, "texts of the site"),
    Action.WEBHOOK_CHANGED: (ENTITY, UPDATE, "webhook"),
    Action.DOCUMENT_CHANGED: (ENTITY, UPDATE, "document"),
    Action.DOCUMENT_READ: (RESOURCES, READ, "document"),
    Action.MEMBERS_CHANGED: (ENTITY, UPDATE, "project"),
    Action.CONVERSATION_DELETED: (ENTITY, DELETE, "conversation"),
    Action.LOG_READ: (RESOURCES, READ, "audit log"),
    Action.LOG_EXPORTED: (RESOURCES, EXPORT, "audit log"),
    Action.LOG_TRIMMED: (ENTITY, DELETE, "audit log"),
}
COLUMNS = (
    "number", "time", "action", "actor", "actor_number", "person", "person_number", "subject", "request_id",
    "position", "hash",
)  # fmt: skip


def entries(since: datetime | None = None, until: datetime | None = None) -> Iterator[tuple[AuditEntry, Any]]:
    """The entries since `since` and before `until`, oldest first, each with its seal, if any."""
    found = AuditEntry.objects.order_by("pk")
    if since:
        found = found.filter(created_at__gte=since)
    if until:
        found = found.filter(created_at__lt=until)
    last = 0
    while some := list(found.filter(pk__gt=last)[:1_000]):
        seals = {seal.entry: seal for seal in AuditSeal.objects.filter(entry__in=[each.pk for each in some])}
        for entry in some:
            yield entry, seals.get(entry.pk)
        last = some[-1].pk


def write_csv(target: TextIO, since: datetime | None = None, until: datetime | None = None) -> int:
    """Write the entries of a period as rows below COLUMNS, and return their number."""
    writer = csv.writer(target)
    writer.writerow(COLUMNS)
    count = 0
    for entry, seal in entries(since, until):
        row = (
            entry.pk, entry.created_at.isoformat(), entry.action, entry.actor, entry.actor_id, entry.person,
            entry.person_id, entry.subject, entry.request_id, seal and seal.position, seal and seal.hash,
        )  # fmt: skip
        writer.writerow([plain(cell) if isinstance(cell, str) else cell for cell in row])
        count += 1
    return count


def write_lines(target: TextIO, since: datetime | None = None, until: datetime | None = None) -> int:
    """Write the entries of a period as OCSF events, one per line, and return their number."""
    count = 0
    for entry, seal in entries(since, until):
        target.write(line_of(entry, seal) + "\n")
        count += 1
    return count


def line_of(entry: AuditEntry, seal: AuditSeal | None) -> str:
    return json.dumps(event_of(entry, seal), ensure_ascii=False)


def _action(entry: AuditEntry) -> str:
    """The action in English, whatever the site's language, because programs read it."""
    with override("en"):
        return entry.get_action_display()


def event_of(entry: AuditEntry, seal: AuditSeal | None) -> dict[str, Any]:
    """One entry as an OCSF event."""
    class_uid, activity, kind = CLASSES[entry.action]
    refused = entry.action == Action.SIGN_IN_REFUSED
    event: dict[str, Any] = {
        "class_uid": class_uid,
        "class_name": NAMES[class_uid],
        "category_uid": class_uid // 1000,
        "category_name": CATEGORIES[class_uid // 1000],
        "activity_id": activity,
        "type_uid": class_uid * 100 + activity,
        "time": round(entry.created_at.timestamp() * 1000),
        "severity_id": MEDIUM if refused else INFORMATIONAL,
        "status_id": FAILURE if refused else SUCCESS,
        "message": _action(entry),
        "metadata": {
            "version": OCSF_VERSION,
            "product": PRODUCT,
            "uid": str(entry.pk),
            "profiles": ["host"],  # the profile that adds `actor`
        },
        "actor": {"user": _user(entry.actor, entry.actor_id)},
    }
    if activity == OTHER:
        event["activity_name"] = _action(entry)
    if entry.request_id:
        event["metadata"]["correlation_uid"] = entry.request_id
    if class_uid in {ACCOUNT, AUTHENTICATION}:
        event["user"] = _user(entry.person or "unknown", entry.person_id)
    if class_uid == AUTHENTICATION:
        event["service"] = {"name": "chatsite"}
    elif class_uid == ENTITY:
        event["entity"] = {"type": kind, "name": entry.subject or kind}
    elif class_uid == RESOURCES:
        event["web_resources"] = [{"type": kind, "name": entry.subject or kind}]
    event["unmapped"] = {"action": entry.action, "subject": entry.subject}
    if entry.person and "user" not in event:
        event["unmapped"] |= {"person": entry.person, "person_number": entry.person_id}
    if seal:
        event["unmapped"] |= {"position": seal.position, "hash": seal.hash}
    return event


def _user(name: str, number: int | None) -> dict[str, str]:
    return {"name": name} | ({"uid": str(number)} if number is not None else {})
