from django.test import SimpleTestCase

from chat.errors import ERRORS
from history.failures import WORDS


class FailureTests(SimpleTestCase):
    def test_failures_have_the_messages_of_the_chat_urls(self):
        self.assertEqual({code: ERRORS[code].words for code in WORDS}, WORDS)
