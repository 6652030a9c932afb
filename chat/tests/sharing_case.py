"""A conversation with a statement from an open document and one from a closed document, to be shared."""

import re

from django.test import TestCase

from chatsite.accounts.principal import Principal
from history import recording, sharing
from history.models import Conversation, Source
from ingestion.access.lists import Audience
from ingestion.models import Passage
from ingestion.tests.factories import make_document, make_user

OPEN, CLOSED = "handbook.md#page=11", "halyard-plan.md#page=3"
OPEN_WORDS = "A change of the place of work is announced at least eight weeks before."
CLOSED_WORDS = "The crew office moves to Port Ansel on 1 March 2027."
OPEN_STATEMENT = f"A change of the place of work is announced at least eight weeks before [{OPEN}]."
CLOSED_STATEMENT = f"The crew office moves to Port Ansel on 1 March 2027 [{CLOSED}]."
QUESTION = "When does the crew office move, and when will we be told?"
FOLLOWUP = "Who decided on Port Ansel?"
CANARIES = ("ansel", "halyard", "1 march")
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="[^"]+"')
CHANGING = re.compile(r"[0-9a-f]{32}|nonce-[^'\"]+")


class SharingCase(TestCase):
    def setUp(self):
        self.owner, self.reader = (
            make_user("mara", groups=["Pursers"]),
            make_user("reader", groups=["Pursers"]),
        )
        self.group = self.owner.groups.get()
        self.principal = Principal(self.owner.pk, "command")
        self.open = make_document(
            "handbook.md", [("page=11", 11, "Policies", OPEN_WORDS)], title="Handbook", everyone=True
        )
        self.closed = make_document(
            "halyard-plan.md",
            [("page=3", 3, "Project Halyard", CLOSED_WORDS)],
            title="Halyard plan",
            users=[self.owner],
            owner=self.owner,
        )
        self.conversation = recording.open_conversation(self.principal, title="The crew office")
        self.answer = self.say(f"{CLOSED_STATEMENT} {OPEN_STATEMENT}")
        self.client.force_login(self.reader)

    def say(self, text, question=QUESTION, given=(), **values):
        """A question and its answer, whose sources are both documents unless `given` names others."""
        given = given or ((self.closed, CLOSED, CLOSED_WORDS), (self.open, OPEN, OPEN_WORDS))
        recording.append(self.conversation, "user", question)
        labels = [label for _, label, _ in given]
        answer = recording.append(
            self.conversation,
            "assistant",
            text,
            **{
                "labels": labels,
                "citations": [label for label in labels if f"[{label}]" in text],
                "followups": [FOLLOWUP],
                "thoughts": [
                    {"title": "Prompt", "description": [f"{{'role': 'system', 'content': '{CLOSED_WORDS}'}}"]}
                ],
                "searched_count": 2,
                "run_id": None,
            }
            | values,
        )
        for rank, (document, label, words) in enumerate(given, start=1):
            Source.objects.create(
                message=answer,
                document=document,
                document_version=1,
                passage_id=Passage.objects.get(document=document).pk,
                rank=rank,
                label=label,
                title=document.title,
                heading="Project Halyard" if document == self.closed else "Policies",
                content=words,
                score=0.9,
                found_by="both",
            )
        return answer

    def share(self, audience=None, **values):
        audience = audience or Audience(group_ids=frozenset({self.group.pk}))
        self.row, self.token = sharing.create(self.principal, self.conversation.pk, audience, **values)
        self.url = f"/s/{self.token}/"
        return self.url

    def page(self, path=""):
        response = self.client.get(self.url + path)
        self.assertEqual(response.status_code, 200, path)
        return response.content.decode()

    def assert_clean(self, text):
        found = [canary for canary in CANARIES if canary in text.lower()]
        self.assertEqual(found, [], text)

    def assert_absent(self, url=None):
        url = url or self.url
        for path in ("", "source/1.1/", "source/1.2/", "export.md", "export.md?answer=1"):
            self.assertEqual(self.client.get(url + path).status_code, 404, path)
        before = Conversation.objects.count()
        self.assertEqual(self.client.post(url + "go-on").status_code, 404)
        self.assertEqual(Conversation.objects.count(), before)
