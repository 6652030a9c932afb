"""The people and things of the access matrix."""

import uuid
from datetime import timedelta
from hashlib import sha256

from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.utils import timezone

from chat.models import Lease, Run
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey, User, WebhookDelivery, WebhookEndpoint
from chatsite.demo import SAMPLES
from history.models import Conversation, Feedback, Message, Project, Share, Source
from history.sharing import digest_of
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.models import Document, Passage

ROLES = ("anonymous", "stranger", "member", "owner", "staff", "disabled")
CONVERSATION = uuid.UUID("11111111-1111-4111-8111-111111111111")
RUN = uuid.UUID("33333333-3333-4333-8333-333333333333")
DOCUMENT = uuid.UUID("22222222-2222-4222-8222-222222222222")
MESSAGE = uuid.UUID("44444444-4444-4444-8444-444444444444")
NOWHERE = uuid.UUID("99999999-9999-4999-8999-999999999999")
SHARE = uuid.UUID("55555555-5555-4555-8555-555555555555")
WEBHOOK = uuid.UUID("66666666-6666-4666-8666-666666666666")
DELIVERY = uuid.UUID("77777777-7777-4777-8777-777777777777")
PROJECT = uuid.UUID("88888888-8888-4888-8888-888888888888")
TOKEN = "a-token-of-the-board"
NAME = "minutes.pdf"
PDF = SAMPLES / "everyone" / "safety-manual.pdf"  # any format with pages


def rows_of(table):
    """The rows of a text table: [{column: word}]"""
    header, *lines = [line.split() for line in table.splitlines() if line.strip()]
    return [dict(zip(header, line, strict=True)) for line in lines]


class World:
    """`owner` has a conversation, an API key, and a document that the group of `member` may read."""

    def __init__(self):
        self.group = Group.objects.create(name="Board")
        self.people = {
            role: User.objects.create_user(role, password=None, is_staff=role == "staff")
            for role in ROLES[1:]
        }
        User.objects.filter(username="staff").update(is_superuser=True)
        self.people["member"].groups.add(self.group)
        self.keys = {
            role: ApiKey.objects.issue(person, "matrix", scopes=Scope.values)[1]
            for role, person in self.people.items()
        }
        self.key_id = ApiKey.objects.get(user=self.people["owner"]).pk
        self.restore()

    def disable(self):
        """Disable the account `disabled`, after it has signed in."""
        User.objects.filter(username="disabled").update(is_active=False)

    def restore(self):
        """Restore the owner's things after a request that may have changed them."""
        Conversation.objects.all().delete()
        Project.objects.all().delete()
        Document.objects.all().delete()
        owner = self.people["owner"]
        ApiKey.objects.filter(user=owner).update(revoked_at=None)
        WebhookEndpoint.objects.all().delete()
        self._webhook(owner)
        self.document = self._document(owner)
        self.conversation = self._conversation(owner)

    def _document(self, owner):
        audience = Audience(group_ids=frozenset({self.group.pk}))
        document = Document(
            public_id=DOCUMENT,
            owner=owner,
            access_list=access_list_for(audience, owner.pk),
            name=NAME,
            title="Minutes of the board",
            media_type="application/pdf",
            size=PDF.stat().st_size,
            page_count=1,
            sha256=sha256(PDF.read_bytes()).hexdigest(),
            version=1,
            status=Document.Status.READY,
        )
        document.file.save(NAME, ContentFile(PDF.read_bytes()), save=False)
        document.save()
        Passage.objects.create(document=document, position=0, content="The board met.")
        return document

    def _webhook(self, owner):
        endpoint = WebhookEndpoint.objects.create(
            id=WEBHOOK, owner=owner, url="https://hooks.example.org/", events=["document.ready"], active=False
        )
        WebhookDelivery.objects.create(id=DELIVERY, endpoint=endpoint, event="webhook.test", data={})

    def _conversation(self, owner):
        project = Project.objects.create(
            id=PROJECT, owner=owner, name="A secret project", access_list=self.document.access_list
        )
        conversation = Conversation.objects.create(
            id=CONVERSATION, owner=owner, title="A secret title", project=project
        )
        Message.objects.create(conversation=conversation, position=0, role="user", content="When?")
        answer = Message.objects.create(
            id=MESSAGE,
            conversation=conversation,
            position=1,
            role="assistant",
            content=f"Then [{NAME}].",
            citations=[NAME],
        )
        Source.objects.create(
            message=answer,
            document=self.document,
            document_version=1,
            passage_id=self.document.passages.get().pk,
            rank=1,
            label=NAME,
            title="Minutes of the board",
            content="The board met.",
            score=1,
            found_by="words",
        )
        # A running answer, so that no row of the matrix starts a real one.
        Message.objects.filter(pk=answer.pk).update(run_id=RUN)
        Run.objects.create(
            id=RUN,
            owner=owner,
            conversation=conversation,
            question=conversation.messages.get(position=0),
            answer=answer,
            body_digest="0",
        )
        Lease.objects.create(run_id=RUN, until=timezone.now() + timedelta(hours=1))
        Share.objects.create(
            id=SHARE,
            conversation=conversation,
            up_to=1,
            access_list=self.document.access_list,
            digest=digest_of(TOKEN),
        )
        return conversation

    def delete_conversation(self):
        """Delete it as its owner does, so that it can be restored."""
        Conversation.objects.update(deleted_at=timezone.now())

    def finish_answer(self):
        """A share shows the sources of finished answers only."""
        Message.objects.filter(pk=MESSAGE).update(state="complete")

    def answer_again(self):
        """A second version of the answer."""
        Message.objects.get_or_create(
            conversation=self.conversation, position=2, follows=0, role="assistant", content="Never."
        )

    def give_feedback(self):
        """On a finished answer: an unfinished one cannot be rated."""
        answer = self.conversation.messages.get(position=1)
        Feedback.objects.update_or_create(message=answer, defaults={"rating": "bad"})

    @property
    def arguments(self):
        """Values of URL parameters, with the ids of the owner's things."""
        return {
            "conversation_id": CONVERSATION,
            "message_id": MESSAGE,
            "run_id": RUN,
            "response_id": f"resp_{RUN.hex}",
            "public_id": DOCUMENT,
            "document_id": DOCUMENT,
            "slashed": f"{DOCUMENT}/nothing",
            "what": "people",
            "key_id": self.key_id,
            "person_id": self.people["owner"].pk,
            "position": 1,
            "other": 2,
            "asked": 0,
            "share_id": SHARE,
            "project_id": PROJECT,
            "webhook_id": WEBHOOK,
            "delivery_id": DELIVERY,
            "token": TOKEN,
            "place": "1.1",
            "page": 1,
            "number": 1,
            "sourcefile": NAME,
            "model": "quotations",
            "digest": "of-no-picture",
        }

    @property
    def nothing(self):
        """Values of the same parameters, with unknown ids."""
        return self.arguments | {
            "conversation_id": NOWHERE,
            "message_id": NOWHERE,
            "run_id": NOWHERE,
            "response_id": f"resp_{NOWHERE.hex}",
            "public_id": NOWHERE,
            "document_id": NOWHERE,
            "key_id": 999_999,
            "share_id": NOWHERE,
            "project_id": NOWHERE,
            "webhook_id": NOWHERE,
            "delivery_id": NOWHERE,
            "token": "a-token-of-nobody",
            "sourcefile": "nothing-here.pdf",
        }
