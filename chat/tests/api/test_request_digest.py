"""A repeated request is recognized by the version before and after an upgrade."""

from uuid import UUID

from django.test import SimpleTestCase

from chat.requests import EarlierMessage, Generation, ImageInput, Options, RunRequest
from chat.runs.idempotency import digest_of


class Digests(SimpleTestCase):
    """As version 0.2.0 stores them; what it does not know is left out of a digest while it has no value."""

    def test_a_plain_question_has_the_digest_of_the_version_before(self):
        digest = "86e9281a6e63bb87192feb9c2e75d77b246cae255629c00ef80b4bf54dc62aba"
        self.assertEqual(digest_of(RunRequest("How many days?")), digest)

    def test_a_question_with_all_older_options_has_the_digest_of_the_version_before(self):
        request = RunRequest(
            "How many days?",
            conversation_id=UUID(int=7),
            earlier=(EarlierMessage("user", "Hello."),),
            alone=True,
            options=Options(top=3, include_category="hr", to_groups=True),
            images=(ImageInput("image/png", b"png"),),
            wish="brief",
            generation=Generation(max_tokens=9, stop=("x",)),
            echo={"a": 1},
        )
        digest = "9766d32e3189eedd0f644d11ff03c194749b5365a8ff731cbb1663f63c4eb7a4"
        self.assertEqual(digest_of(request), digest)

    def test_new_options_change_the_digest_only_if_they_have_a_value(self):
        plain = RunRequest("How many days?")
        others = [
            RunRequest("How many days?", options=Options(scope="hr")),
            RunRequest("How many days?", instead_of=0),
            RunRequest("How many days?", continues="1"),
        ]
        self.assertEqual(len({digest_of(request) for request in [plain, *others]}), 4)
