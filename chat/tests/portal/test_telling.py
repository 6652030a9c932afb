"""What a page receives if much text has arrived at once."""

from django.test import SimpleTestCase

from chat.events import Searching, TextDelta
from chat.portal.frames import _joined


class JoinedTests(SimpleTestCase):
    def test_consecutive_texts_are_merged_with_the_number_of_the_last(self):
        batch = [
            (1, Searching(2)),
            (2, TextDelta("a")),
            (3, TextDelta("b")),
            (4, Searching(3)),
            (5, TextDelta("c")),
        ]
        self.assertEqual(
            _joined(batch, 0),
            [(1, Searching(2)), (3, TextDelta("ab")), (4, Searching(3)), (5, TextDelta("c"))],
        )

    def test_received_and_new_text_are_not_merged(self):
        batch = [(number, TextDelta(str(number))) for number in range(1, 6)]
        self.assertEqual(_joined(batch, 3), [(3, TextDelta("123")), (5, TextDelta("45"))])
        self.assertEqual(_joined(batch, 0), [(5, TextDelta("12345"))])
        self.assertEqual(_joined(batch, 9), [(5, TextDelta("12345"))])
        self.assertEqual(_joined([], 0), [])
