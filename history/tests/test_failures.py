from django.test import SimpleTestCase

from chat.errors import ERRORS
from history.failures import WORDS


class FailureTests(SimpleTestCase):
    def test_the_words_are_those_of_the_chat_doors(self):
        self.assertEqual({code: ERRORS[code].words for code in WORDS}, WORDS)
