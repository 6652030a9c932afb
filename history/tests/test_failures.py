from django.test import SimpleTestCase

from chat.errors import ERRORS
from history.failure_texts import FAILURE_TEXTS


class FailureTests(SimpleTestCase):
    def test_each_failure_has_a_status(self):
        self.assertEqual([code for code in FAILURE_TEXTS if code not in ERRORS], [])
