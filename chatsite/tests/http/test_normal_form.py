"""Normal forms of text with any number of combining marks on a letter."""

import sys
import time
import unicodedata

import pytest
from django.test import SimpleTestCase

from chat import runs
from chat.errors import Refused
from chat.requests import RunRequest
from chatsite.accounts.principal import Principal
from chatsite.normal_form import MAX_MARKS, normal_form
from ingestion.parsing.sections import clean
from ingestion.search.tokens import plain_words

FORMS = ("NFC", "NFKC")
ABOVE, BELOW = "\u0301", "\u0316"
WORDS = "Ærø naïve e\u0301te\u0301 ﬁne ﷺ 年假 ﾊﾞｽ Việt Nam हिन्दी עִבְרִית ก็ 각 ①½"
SECONDS = 1.0  # CPU seconds; sorting by insertion would take minutes


@pytest.mark.slow
class NormalFormTests(SimpleTestCase):
    def test_the_normal_form_is_that_of_unicode(self):
        for form in FORMS:
            self.assertEqual(normal_form(form, WORDS), unicodedata.normalize(form, WORDS))
            every = "x".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
            self.assertEqual(normal_form(form, every), unicodedata.normalize(form, every))

    def test_as_many_marks_as_any_language_has_are_kept(self):
        text = "a" + ABOVE * (MAX_MARKS // 2) + BELOW * (MAX_MARKS // 2)
        self.assertEqual(normal_form("NFC", text), unicodedata.normalize("NFC", text))
        self.assertEqual(normal_form("NFC", text + ABOVE * 1_000), unicodedata.normalize("NFC", text))

    def test_any_number_of_marks_takes_linear_time(self):
        marks = "a" + ABOVE * 250_000 + BELOW * 250_000
        # Starters that decompose to marks, and characters of neither class.
        others = "a" + "\u0f73\u0f71" * 125_000 + "ﾞ" * 125_000 + BELOW * 125_000
        for text in (marks, others):
            started = time.thread_time()
            for form in FORMS:
                normal_form(form, text)
            clean(text)
            plain_words(text)
            self.assertLess(time.thread_time() - started, SECONDS)

    def test_a_question_with_only_marks_is_refused_at_once(self):
        request = RunRequest("a" + ABOVE * 250_000 + BELOW * 250_000)
        started = time.thread_time()
        with self.assertRaises(Refused) as refused:
            runs.begin(Principal(1, "command"), request)
        self.assertEqual(refused.exception.code, "message_too_long")
        self.assertLess(time.thread_time() - started, SECONDS)
