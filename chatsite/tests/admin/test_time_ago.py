"""How long ago something was, in words."""

from datetime import UTC, datetime, timedelta
from unittest import mock

from django.test import SimpleTestCase
from django.utils.translation import override

from chatsite.templatetags.time_ago import time_ago

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class TimeAgo(SimpleTestCase):
    def test_the_first_minute_is_just_now(self):
        with mock.patch("django.utils.timezone.now", return_value=NOW):
            for seconds, english, german in (
                (0, "just now", "gerade eben"),
                (59, "just now", "gerade eben"),
                (60, "1\xa0minute ago", "vor 1\xa0Minute"),
                (7_200, "2\xa0hours ago", "vor 2\xa0Stunden"),
            ):
                moment = NOW - timedelta(seconds=seconds)
                self.assertEqual(time_ago(moment), english)
                with override("de"):
                    self.assertEqual(time_ago(moment), german)
