"""A content manager, and questions with their answers for the list of unanswered questions."""

from datetime import timedelta
from unittest.mock import patch

from django.contrib.auth.models import Permission
from django.test import TestCase
from django.utils import timezone

from chat.llm.chat_model import NOTHING_FITS
from chat.unanswered.question_judging import judge_new
from chat.unanswered.unanswered_list import read_texts, unanswered
from chatsite.accounts.principal import Principal
from history.models import Conversation, Message
from ingestion.tests.factories import make_user

PAGE = "/admin/chat/verifiedanswer/unanswered/"
FERRY = "Who pays if I miss the train after a late ferry?"


class UnansweredCase(TestCase):
    def setUp(self):
        self.manager = make_user("ines", is_staff=True)
        rights = ["view_unanswered", "add_verifiedanswer", "view_verifiedanswer"]
        rights += ["add_verifiedquestion", "add_verifiedcitation", "view_document"]
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=rights))
        self.client.force_login(self.manager)
        # Inside a test's transaction the entry cannot be committed before the page is rendered.
        looked = patch(
            "chat.unanswered.unanswered_admin.record_before",
            lambda *values, **named: self.looks.append(values),
        )
        self.looks = []
        looked.start()
        self.addCleanup(looked.stop)

    def ask(self, text, *, person=None, answer=NOTHING_FITS, at=None, conversation=None, **values):
        """Store a question with its answer, by default a day old."""
        at = at or timezone.now() - timedelta(days=1)
        conversation = conversation or Conversation.objects.create(owner=person or make_user())
        position = conversation.messages.count()
        for role, content, more in (("user", text, {}), ("assistant", answer, values)):
            said = Message.objects.create(
                conversation=conversation,
                position=position,
                role=role,
                content=content,
                created_at=at,
                **more,
            )
            position += 1
        return said

    def found(self):
        judge_new(everything=True)
        found = unanswered(Principal(self.manager.pk, "session"))
        read_texts(found.groups)
        return found

    def page(self, query=""):
        """The list, after the worker's job has run."""
        judge_new(everything=True)
        return self.client.get(f"{PAGE}{query}")
