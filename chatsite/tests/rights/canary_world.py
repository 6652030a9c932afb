"""The people and documents of the canary test. With a site's settings, the following creates them and prints
how to sign in: `manage.py shell -c "from chatsite.tests.rights.canary_world import make; make()"`.

Each document has a word that occurs nowhere else, in its title, its heading and its text. Its topic would
make it the first result for anybody who asks about it and may read it.
"""

import json
import sys
from dataclasses import dataclass, field
from hashlib import sha256

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group
from django.contrib.sessions.backends.db import SessionStore
from django.core.files.base import ContentFile

from chatsite.accounts.models import ApiKey, User
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import make_document, make_user

GROUPS = {"ann": ["HR"], "bob": ["Board"], "cat": ["HR", "Board"], "dan": [], "eve": ["HR"]}
PEOPLE = [*GROUPS, "guest"]
TOPICS = [
    "harbours", "bridges", "lanterns", "gardens", "kitchens", "violins", "glaciers", "meadows", "compasses",
    "orchards", "theatres", "stables", "deserts",
]  # fmt: skip
LATER = {"left": ("ann", "HR"), "tightened": (3, 11), "deleted": 5, "disabled": "eve"}


@dataclass(frozen=True)
class Canary:
    """A document with its owner, and the other readers before and after the change of rights."""

    number: int
    owner: str = ""
    groups: tuple = ()
    people: tuple = ()
    everyone: bool = False
    guests: bool = False
    topic: str = field(init=False)
    word: str = field(init=False)
    name: str = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "topic", TOPICS[self.number])
        object.__setattr__(self, "word", f"quell{self.number:02}zorn")
        object.__setattr__(self, "name", f"paper-{self.number:02}.md")

    def readers(self, later=False):
        """The names of all readers; with `later`, after the changes in the middle of the test."""
        if later and self.number == LATER["deleted"]:
            return set()
        readers = {self.owner, *self.people}
        if not (later and self.number in LATER["tightened"]):
            readers |= set(PEOPLE) if self.guests else set(GROUPS) if self.everyone else set()
            memberships = {(person, group) for person, groups in GROUPS.items() for group in groups}
            memberships -= {LATER["left"]} if later else set()
            readers |= {person for person, group in memberships if group in self.groups}
        if later and not self.guests:  # a person with a disabled account counts as a guest
            readers.discard(LATER["disabled"])
        return readers - {""}


CANARIES = (
    Canary(0, everyone=True),
    Canary(1, everyone=True, guests=True),
    Canary(2, "cat", groups=("HR",)),
    Canary(3, "cat", groups=("HR",)),  # later readable only by cat
    Canary(4, "bob", groups=("Board",)),
    Canary(5, "bob", groups=("Board",)),  # deleted later
    Canary(6, "ann"),
    Canary(7, "bob"),
    Canary(8, "dan"),
    Canary(9, "cat", people=("dan",)),
    Canary(10, "eve"),
    Canary(11, "dan", everyone=True),  # later readable only by dan
    Canary(12, groups=("Nobody's",)),
)


def make():
    """Create accounts with keys and sessions, and the documents; print all of it as JSON."""
    people = {name: make_user(name, groups=groups) for name, groups in GROUPS.items()}
    make_user("somebody", groups=["Nobody's"], is_active=False)
    ways_in = {
        name: {"key": ApiKey.objects.issue(person, "canary")[1], "session": _session(person)}
        for name, person in people.items()
    }
    public_ids = {canary.number: str(_document(canary, people).public_id) for canary in CANARIES}
    sys.stdout.write("\n" + json.dumps({"people": ways_in, "documents": public_ids}) + "\n")


def _session(user: User):
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key


def _document(canary, people):
    text = (
        f"The travel allowance for {canary.topic} is {canary.number + 40} a day. Its code is {canary.word}."
        f" Whoever looks after {canary.topic} keeps the receipts."
    )
    document = make_document(
        canary.name,
        [("", None, f"Allowance {canary.word}", text)],
        title=f"Travel to {canary.topic}, {canary.word}",
        owner=people.get(canary.owner),
        users=[people[name] for name in canary.people],
        groups=list(Group.objects.filter(name__in=canary.groups)),
        everyone=canary.everyone,
    )
    if canary.guests:
        set_audience(document, Audience(everyone=True, guests=True))
    data = text.encode()
    document.size, document.sha256 = len(data), sha256(data).hexdigest()
    document.file.save(canary.name, ContentFile(data))
    return document
