"""Limits of new guests and of their questions; pages of other sites cannot create guests for a visitor."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client, SimpleTestCase, TransactionTestCase, override_settings

from chat.models import Run
from chatsite.accounts.guest_limits import address_digest, count_guest
from chatsite.accounts.guests import purge
from chatsite.accounts.models import GuestRate, User
from chatsite.tests.http.test_request_origins import FOREIGN, LISTED
from history.models import Conversation
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import make_document, make_user

JSON = {"content_type": "application/json"}
QUESTION = "How many days of leave may employees carry over?"
BODY = json.dumps({"messages": [{"role": "user", "content": QUESTION}]})
OWN = {"Sec-Fetch-Site": "same-origin"}


def guests():
    return User.objects.filter(guest_until__isnull=False).count()


def let_a_minute_pass():
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_guestrate SET moments = ARRAY("
            "SELECT moment - interval '61 seconds' FROM unnest(moments) AS moment)"
        )


class GuestCase(TransactionTestCase):
    def setUp(self):
        set_audience(make_document("open.md"), Audience(guests=True))
        overridden = override_settings(LOGIN_REQUIRED=False)
        overridden.enable()
        self.addCleanup(overridden.disable)


class Limits(GuestCase):
    @pytest.mark.slow
    @override_settings(QUOTING_WORDS_PER_SECOND=100_000)
    def test_sixty_questions_of_one_address_reach_the_limit(self):
        for client in (None, Client(headers=OWN)):  # without cookies, and as the same guest
            with self.subTest(cookies=bool(client)):
                begun = time.monotonic()
                statuses = [(client or Client()).post("/chat", BODY, **JSON).status_code for _ in range(60)]
                minutes = 1 + (time.monotonic() - begun) // 60
                self.assertEqual(set(statuses), {200, 429})
                self.assertEqual(statuses[:20], [200] * 20)
                self.assertLessEqual(statuses.count(200), 30 * minutes)
            let_a_minute_pass()

    @override_settings(GUEST_QUESTIONS_PER_ADDRESS=2)
    def test_guests_of_one_address_share_their_questions_and_those_of_another_have_their_own(self):
        def asked(address):
            return Client(REMOTE_ADDR=address).post("/chat", BODY, **JSON).status_code

        self.assertEqual([asked("192.0.2.1") for _ in range(3)], [200, 200, 429])
        self.assertEqual(asked("192.0.2.2"), 200)
        self.assertEqual([asked(f"2001:db8::{last}") for last in range(3)], [200, 200, 429])
        self.assertEqual(asked("2001:db8:0:1::1"), 200)

    @override_settings(GUEST_QUESTIONS_PER_ADDRESS=1, GUESTS_PER_ADDRESS=1)
    def test_one_ipv6_site_cannot_use_the_share_of_all_guests_through_its_networks(self):
        opened, asked = lambda client: client.get("/"), lambda client: client.post("/chat", BODY, **JSON)
        for ask in (opened, asked):
            with self.subTest(ask):
                let_a_minute_pass()
                statuses = [
                    ask(Client(REMOTE_ADDR=f"2001:db8:7:{network}::1")).status_code for network in range(6)
                ]
                self.assertEqual(statuses, [200] * 4 + [429] * 2)
                self.assertEqual(ask(Client(REMOTE_ADDR="2001:db8:8::1")).status_code, 200)

    @override_settings(GUEST_QUESTIONS_PER_MINUTE=2)
    def test_all_guests_together_have_a_limit(self):
        answers = [Client(REMOTE_ADDR=f"192.0.2.{last}").post("/api/chat", BODY, **JSON) for last in range(3)]
        self.assertEqual([answer.status_code for answer in answers], [200, 200, 429])
        self.assertEqual(answers[2].json()["error"]["code"], "rate_limited")
        self.assertTrue(1 <= int(answers[2]["Retry-After"]) <= 60)
        self.assertEqual(Run.objects.count(), 2)
        let_a_minute_pass()
        self.assertEqual(Client().post("/api/chat", BODY, **JSON).status_code, 200)

    @override_settings(GUEST_QUESTIONS_PER_MINUTE=1, GUEST_QUESTIONS_PER_ADDRESS=1)
    def test_people_with_an_account_are_not_guests(self):
        client = Client()
        client.force_login(make_user("ann"))
        for _ in range(3):
            self.assertEqual(client.post("/chat", BODY, **JSON).status_code, 200)
        self.assertFalse(GuestRate.objects.exists())

    @override_settings(GUEST_QUESTIONS_PER_ADDRESS=1)
    def test_repetitions_and_refusals_are_not_counted(self):
        client = Client(headers=OWN)
        headers = {"Idempotency-Key": "one"}
        answers = [client.post("/chat", BODY, headers=headers, **JSON).status_code for _ in range(3)]
        self.assertEqual(answers, [200, 200, 200])
        self.assertEqual([client.post("/chat", BODY, **JSON).status_code for _ in range(2)], [429, 429])
        let_a_minute_pass()
        self.assertEqual(client.post("/chat", BODY, **JSON).status_code, 200)

    @override_settings(GUESTS_PER_ADDRESS=2, GUESTS_PER_MINUTE=3)
    def test_new_guests_are_limited_on_pages_and_in_the_api(self):
        def opened(address, path="/"):
            return Client(REMOTE_ADDR=address).get(path)

        self.assertEqual([opened("192.0.2.1").status_code for _ in range(3)], [200, 200, 429])
        self.assertEqual(opened("192.0.2.2", "/chat-history").status_code, 200)
        page, refused = opened("192.0.2.3"), opened("192.0.2.3", "/chat-history")
        self.assertContains(page, "Try again in a moment, or sign in.", status_code=429)
        self.assertEqual((refused.status_code, refused.json()["error"]["code"]), (429, "rate_limited"))
        self.assertIn("Retry-After", refused.headers)
        self.assertEqual(guests(), 3)

    @override_settings(GUESTS_PER_ADDRESS=5)
    def test_fifty_concurrent_guests_count_like_successive_ones(self):
        def counted(_):
            try:
                return count_guest("an address")
            finally:
                connection.close()

        with ThreadPoolExecutor(10) as threads:
            waits = list(threads.map(counted, range(50)))
        self.assertEqual(waits.count(0), 5)
        self.assertTrue(all(55 < wait <= 60 for wait in waits if wait))

    def test_expired_counts_are_deleted(self):
        Client().get("/")
        purge()
        self.assertEqual(GuestRate.objects.count(), 2)
        let_a_minute_pass()
        purge()
        self.assertFalse(GuestRate.objects.exists())


class Addresses(SimpleTestCase):
    def test_addresses_are_stored_as_hashes_of_their_network(self):
        self.assertEqual(address_digest("::ffff:192.0.2.1"), address_digest("192.0.2.1"))
        self.assertEqual(address_digest("2001:db8::1"), address_digest("2001:db8::ffff"))
        self.assertNotEqual(address_digest("2001:db8::1"), address_digest("2001:db8:0:1::1"))
        self.assertNotEqual(address_digest("192.0.2.1"), address_digest("192.0.2.2"))
        self.assertLessEqual(
            len(address_digest("2001:db8::1")), User._meta.get_field("guest_address").max_length
        )
        with override_settings(SECRET_KEY="another"):
            other = address_digest("192.0.2.1")
        self.assertNotEqual(other, address_digest("192.0.2.1"))


@pytest.mark.slow
class PagesOfOtherSites(GuestCase):
    """Browsers send no `Lax` cookie with a form of another site, so the request is anonymous."""

    foreign = {name: headers for name, headers in FOREIGN.items() if headers and "typed" not in name}

    def test_no_foreign_request_creates_a_guest_or_sets_a_cookie(self):
        for name, headers in self.foreign.items():
            for method, path in (
                ("POST", "/chat"), ("POST", "/api/chat"), ("POST", "/chat-history"), ("GET", "/chat-history"),
                ("POST", "/v1/chat/completions"), ("POST", "/chat/stream"), ("POST", "/"),
            ):  # fmt: skip
                if method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate":
                    continue
                with self.subTest(f"{method} {path} by {name}"):
                    answer = Client(enforce_csrf_checks=True).generic(
                        method, path, BODY, "application/json", headers=headers
                    )
                    self.assertEqual((answer.status_code, dict(answer.cookies)), (403, {}))
        self.assertEqual((guests(), Run.objects.count(), Conversation.objects.count()), (0, 0, 0))

    def test_a_form_of_another_site_does_not_replace_the_session_of_a_signed_in_person(self):
        """The browser does not send its cookie, but would store any cookie of the response."""
        client = Client()
        client.force_login(make_user("ann"))
        kept = client.cookies["sessionid"].value
        answer = Client().post("/chat", BODY, headers=FOREIGN["a plain form"], **JSON)
        client.cookies.update(answer.cookies)
        self.assertEqual(client.cookies["sessionid"].value, kept)

    def test_a_link_of_another_site_creates_a_guest_and_an_image_or_frame_does_not(self):
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        self.assertEqual(Client().get("/", headers=link).status_code, 200)
        self.assertEqual(guests(), 1)
        for destination, mode in (("image", "no-cors"), ("iframe", "navigate"), ("empty", "cors")):
            headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
            self.assertEqual(Client().get("/", headers=headers).status_code, 302)
            self.assertEqual(Client().get("/chat-history", headers=headers).status_code, 403)
        self.assertEqual(guests(), 1)

    @override_settings(CORS_ORIGINS=[LISTED])
    def test_a_listed_origin_without_credentials_is_a_new_guest_for_each_request(self):
        """A question is therefore answered, but history needs a key or a token."""
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Origin": LISTED}
        first = Client().post("/chat", BODY, headers=headers, **JSON)
        self.assertEqual(first.status_code, 200)
        body = json.loads(BODY) | {"session_state": first.json()["session_state"]}
        again = Client().post("/chat", json.dumps(body), headers=headers, **JSON)
        self.assertEqual(again.status_code, 404)
        self.assertEqual(Client().get("/chat-history", headers=headers).json(), [])
        self.assertEqual(guests(), 3)
        picture = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe", "Referer": f"{LISTED}/chat"}
        self.assertNotEqual(Client().get("/content/open.md", headers=picture).status_code, 403)
        self.assertEqual(guests(), 4)

    def test_programs_without_the_headers_of_browsers_become_guests(self):
        self.assertEqual(Client().post("/chat", BODY, **JSON).status_code, 200)
        self.assertEqual(guests(), 1)
