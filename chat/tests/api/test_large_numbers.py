"""Numbers in addresses that no column of the database can hold."""

import pytest
from django.test import TestCase

from history.models import Conversation, Message
from ingestion.tests.factories import make_user

NUMBERS = (2**31, 2**63, 10**400)
ADDRESSES = (  # (method, address below a conversation's)
    ("post", "q/{number}/edit"),
    ("post", "m/{number}/choose"),
    ("get", "m/{number}/compare/1/"),
    ("get", "m/1/compare/{number}/"),
    ("post", "m/{number}/again"),
    ("post", "m/{number}/continue"),
    ("post", "m/{number}/feedback"),
)


@pytest.mark.slow
class LargeNumberTests(TestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.client.force_login(self.user)
        self.conversation = Conversation.objects.create(owner=self.user, title="Leave")
        for position, role in enumerate((Message.Role.USER, Message.Role.ASSISTANT)):
            self.conversation.messages.create(
                position=position, role=role, content="Words", state=Message.State.COMPLETE
            )

    def test_a_number_beyond_every_column_is_refused_without_an_error(self):
        for method, address in ADDRESSES:
            for number in NUMBERS:
                with self.subTest(address=address, digits=len(str(number))):
                    path = f"/c/{self.conversation.pk}/{address.format(number=number)}"
                    response = getattr(self.client, method)(path, {"question": "When?", "rating": "up"})
                    self.assertLess(response.status_code, 500)
                    self.assertGreaterEqual(response.status_code, 300)

    def test_a_key_or_an_id_of_that_size_is_unknown(self):
        for number in NUMBERS:
            self.assertEqual(self.client.post(f"/settings/keys/{number}/revoke/").status_code, 404)
