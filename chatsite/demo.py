"""The demo: three accounts and the sample documents.

They are created once in an empty embedded database. The passwords are stored in the data directory, in a file
that only its owner can read. Until they are changed, each start prints them, the sign-in page shows them (but
not the administrator's) to browsers on the same machine, and the site serves only this machine (see
demo_guard).
"""

import functools
import json
import secrets
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import Group
from django.core.files import File
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_noop

from chatsite.accounts.models import User
from chatsite.http.loopback import (
    is_local,
    is_loopback,
)
from chatsite.server import embedded_postgres
from ingestion.access.lists import Audience
from ingestion.documents import upsert
from ingestion.models import Document

from . import environment

SAMPLES = Path(__file__).resolve().parent.parent / "ingestion" / "samples"
GROUP = "HR"
ADMINISTRATOR = "admin"
DESCRIPTIONS = {
    "employee": gettext_noop("reads what everyone may read, and one document of their own"),
    "hr": gettext_noop("reads what everyone may read, and documents for HR"),
    "admin": gettext_noop("manages the site"),
}
WORDS = [
    "amber", "anchor", "apple", "autumn", "basil", "beacon", "birch", "breeze", "bridge", "canal", "cedar",
    "cinder", "clover", "comet", "coral", "copper", "dahlia", "delta", "ember", "falcon", "fern", "fjord",
    "garnet", "ginger", "glacier", "harbour", "hazel", "heron", "indigo", "island", "jasper", "juniper",
    "kestrel", "lagoon", "lantern", "lichen", "linden", "lupin", "maple", "marble", "meadow", "mosaic",
    "nettle", "oasis", "orchid", "otter", "pebble", "pepper", "plover", "poplar", "quartz", "raven", "reef",
    "saffron", "sorrel", "sparrow", "spruce", "summit", "thistle", "tidal", "timber", "tulip", "velvet",
    "walnut", "willow",
]  # fmt: skip


class DemoAccount(NamedTuple):
    """A demo account with its initial password, for the terminal and the sign-in page."""

    username: str
    password: str
    description: str


def create_demo() -> None:
    """Create the accounts and documents, in one transaction, if there is no account yet.

    Does nothing if the site can be reached from other machines. The worker reads the documents afterwards.
    """
    if User.objects.exists() or exposed_by():
        return
    with transaction.atomic():
        group, _ = Group.objects.get_or_create(name=GROUP)
        passwords = {
            username: f"{secrets.choice(WORDS)}-{secrets.choice(WORDS)}-{secrets.randbelow(9000) + 1000}"
            for username in DESCRIPTIONS
        }
        accounts = {
            "employee": User.objects.create_user("employee", password=passwords["employee"]),
            "hr": User.objects.create_user("hr", password=passwords["hr"]),
            "admin": User.objects.create_superuser("admin", password=passwords["admin"]),
        }
        accounts["hr"].groups.add(group)
        kept = {
            name: {"password": passwords[name], "hash": account.password}
            for name, account in accounts.items()
        }
        embedded_postgres.write_secret(_file(), json.dumps(kept, indent=1))

        # People may always read documents that they have added, so the administrator adds only public ones.
        folders = {
            "everyone": (accounts["admin"], Audience(everyone=True)),
            "hr": (accounts["hr"], Audience(group_ids=frozenset({group.pk}))),
            "employee": (accounts["employee"], Audience()),
        }
        questions = json.loads((SAMPLES / "starters.json").read_text())
        for folder, (owner, audience) in folders.items():
            for path in sorted((SAMPLES / folder).iterdir()):
                with path.open("rb") as file:
                    added = upsert(File(file, name=path.name), path.name, owner=owner, audience=audience)
                # The worker reads the document only after this transaction, so nothing else changes it now.
                Document.objects.filter(pk=added.document.pk).update(questions=questions.get(path.name, []))


def exposed_by() -> str:
    """The setting that makes the site serve more than this machine; empty if there is none."""
    origins = (urlsplit(origin).hostname or origin for origin in settings.CSRF_TRUSTED_ORIGINS)
    public_origin = next((host for host in origins if not is_loopback(host)), "")
    public_name = next((name for name in settings.ALLOWED_HOSTS if not is_loopback(name.lstrip("."))), "")
    host = environment.text("HOST", "127.0.0.1")
    if not is_loopback(host):
        return f"HOST is {host}"
    if public_name:
        return f"CHATSITE_ALLOWED_HOSTS has {public_name}"
    if public_origin:
        return f"CHATSITE_TRUSTED_ORIGINS has {public_origin}"
    if settings.TRUSTED_PROXIES:
        return "CHATSITE_TRUSTED_PROXIES is set"
    return "CHATSITE_HTTPS is 1" if settings.HTTPS else ""


def refusal() -> str:
    """Why the site must not start with these settings and accounts; empty if it may."""
    names = ", ".join(known_passwords())
    if not names or not (reason := exposed_by()):
        return ""
    return (
        f"The demo accounts still have their initial passwords ({names}), and the site would serve more than "
        f"this machine ({reason}). Change these passwords, or set CHATSITE_DEMO=0."
    )


def known_passwords() -> list[str]:
    """The names of demo accounts with initial passwords, in an embedded or external database."""
    return [account.username for account in _unchanged_accounts()] if settings.DEMO else []


def accounts_on_page(request: HttpRequest) -> list[DemoAccount]:
    """The accounts that the sign-in page shows: only on this machine, and never the administrator."""
    client, host = request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_HOST", "")
    server = request.META.get("SERVER_NAME", "")
    if exposed_by() or not is_local(client, host or server, request.headers):
        return []
    return [account for account in demo_accounts() if account.username != ADMINISTRATOR]


def demo_accounts() -> list[DemoAccount]:
    """The demo accounts that still have their initial passwords, in the order of DESCRIPTIONS.

    Empty with an external database or without the demo.
    """
    return _unchanged_accounts() if settings.DEMO and settings.EMBEDDED_DATABASE else []


def _unchanged_accounts() -> list[DemoAccount]:
    try:
        kept: dict[str, dict[str, str]] = json.loads(_file().read_text())
    except (OSError, ValueError):
        return []
    found = User.objects.filter(username__in=kept, is_active=True).values_list("username", "password")
    current = dict(found)
    return [
        DemoAccount(username, kept[username]["password"], gettext(description))
        for username, description in DESCRIPTIONS.items()
        if username in current
        and (
            kept[username]["hash"] == current[username]
            or _matches(kept[username]["password"], current[username])
        )
    ]


def _file() -> Path:
    return Path(settings.DATA_DIR) / "demo_accounts.json"


@functools.lru_cache(maxsize=16)
def _matches(password: str, encoded: str) -> bool:
    # Comparing hashes is not enough: Django changes the hash of an unchanged password when it raises the cost
    # of hashing. Results are cached, because checking a password takes a tenth of a second.
    return check_password(password, encoded)
