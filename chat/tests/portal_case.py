"""A conversation about one document, and the person who asked in it; no model runs."""

import re
from unittest.mock import patch

from django.test import TestCase

from chat.tests.conversations import answered
from ingestion.tests.factories import make_document, make_user

START = "How many days of leave may employees carry over?"


def text_of(response):
    return response.content.decode()


def compact_text_of(response):
    """The page without the indentation of its templates."""
    return re.sub(r">\s+<", "><", " ".join(text_of(response).split()))


class PortalCase(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.user = make_user("asker")
        cls.other = make_user("other")
        cls.document = make_document(
            "guide.md", title="Leave guide", everyone=True, folder="People", questions=[START]
        )
        cls.conversation, cls.answer = answered(cls.user, cls.document)
        cls.url = f"/c/{cls.conversation.pk}/"

    def setUp(self):
        self.client.force_login(self.user)
        starting = patch("chat.runs.start")
        self.start = starting.start()
        self.addCleanup(starting.stop)
