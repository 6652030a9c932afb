"""Webhooks: who hears of what, how it is signed and sent, and what happens when nobody takes it."""

import asyncio
import importlib.util
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from chat.announcements import announce_end
from chat.llm.chat_model import NOTHING_FITS
from chat.tests.conversations import answered
from chatsite.accounts import webhooks
from chatsite.accounts.models import ApiKey, AuditEntry, User, WebhookDelivery, WebhookEndpoint
from chatsite.accounts.principal import Principal
from chatsite.accounts.webhooks import addresses, dispatching, secrets, sending
from chatsite.tests.limits import HANG_SECONDS
from history import feedback
from history.recording import Closing
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

LOOPBACK = [ip_network("127.0.0.0/8")]
PATH = Path(settings.BASE_DIR) / "docs" / "integrations" / "webhooks.py"
RECEIVER = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("receiver", PATH))
spec.loader.exec_module(RECEIVER)


class Server(ThreadingHTTPServer):
    """Keeps what is posted; answers with `status` and `headers`."""

    daemon_threads = True

    def __init__(self):
        self.got, self.status, self.headers = [], 204, {}
        self.arrived = threading.Semaphore(0)
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        for name, value in {"Content-Length": "0", **self.server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.server.arrived.release()

    def log_message(self, *arguments):
        pass


@override_settings(WEBHOOK_NETWORKS=LOOPBACK)
class WebhookCase(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.ann, self.bob = make_user("ann"), make_user("bob")
        self.server = Server()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def endpoint(self, owner, *events, **values):
        self.secret = secrets.new_secret()
        url = f"http://127.0.0.1:{self.server.server_port}/in"
        values = {"url": url, "secret": secrets.encrypt(self.secret)} | values
        return WebhookEndpoint.objects.create(owner=owner, events=list(events), **values)

    def deliver(self):
        """Make each attempt that is due; what was sent of it, newest last."""
        before = len(self.server.got)
        for endpoint in WebhookEndpoint.objects.order_by("created_at"):
            while (attempt := sending.take(endpoint.pk)) is not None:
                sending.store(attempt, asyncio.run(sending.send(attempt)))
        return [json.loads(body) for _, body in self.server.got[before:]]

    def events(self):
        return [(event["type"], event["data"]) for event in self.deliver()]


class WhoHearsTests(WebhookCase):
    def test_those_who_may_read_a_document_hear_of_its_reading_its_deletion_and_its_readers(self):
        everything = webhooks.Event.values
        self.endpoint(self.ann, *everything)
        self.endpoint(self.bob, *everything)
        document = self.add(owner=self.ann, audience=Audience(), external_id="a-1")
        ids = {"document_id": str(document.public_id), "external_id": "a-1"}
        self.assertEqual(self.events(), [("document.ready", {**ids, "status": "ready", "version": 1})])
        set_audience(document, Audience(user_ids=frozenset({self.bob.pk})))
        named = {"document_id": str(document.public_id), "external_id": ""}
        heard = self.events()
        self.assertCountEqual(
            heard,
            [("access.changed", {**ids, "readable": True}), ("access.changed", {**named, "readable": True})],
        )
        set_audience(document, Audience())
        self.assertIn(("access.changed", {**named, "readable": False}), self.events())
        documents.delete_document(document)
        self.assertEqual(self.events(), [("document.deleted", ids)])

    def test_a_failure_is_told_and_what_was_not_subscribed_is_not(self):
        self.endpoint(self.ann, "document.failed")
        document = self.add("a.pdf", b"no PDF", owner=self.ann)
        self.assertEqual(document.status, "failed")
        ((event, data),) = self.events()
        self.assertEqual((event, data["status"]), ("document.failed", "failed"))

    def test_what_may_not_be_read_any_more_when_it_is_due_is_neither_sent_nor_listed(self):
        endpoint = self.endpoint(self.bob, "document.ready")
        document = self.add(owner=self.ann, audience=Audience(user_ids=frozenset({self.bob.pk})))
        set_audience(document, Audience())
        self.assertEqual(self.events(), [])
        self.assertFalse(endpoint.deliveries.exists())

    def test_only_the_asker_hears_of_an_answer_and_managers_of_what_was_in_vain_without_words(self):
        document = make_document("a.md", owner=self.ann)
        _, answer = answered(self.ann, document)
        manager = make_user("manager", is_staff=True)
        manager.user_permissions.add(
            *Permission.objects.filter(codename__in=["view_unanswered", "view_feedback"])
        )
        for person in (self.ann, self.bob, manager):
            self.endpoint(person, "answer.completed", "question.unanswered", "answer.feedback")
        announce_end(self.ann.pk, {answer.pk: Closing(answer.State.COMPLETE, NOTHING_FITS)})
        heard = dict(self.events())
        self.assertEqual(heard.keys(), {"answer.completed", "question.unanswered"})
        self.assertEqual(heard["answer.completed"]["message_id"], str(answer.pk))
        self.assertEqual(heard["question.unanswered"], {"reason": "refused"})
        feedback.give(Principal(self.ann.pk, "session"), answer.pk, feedback.Opinion("bad", comment="Secret"))
        heard = self.events()
        self.assertEqual([event for event, _ in heard], ["answer.feedback"] * 2)
        self.assertEqual(sum("conversation_id" in data for _, data in heard), 1)
        self.assertNotIn("Secret", json.dumps(heard))
        feedback.take_back(Principal(self.ann.pk, "session"), answer.pk)
        User.objects.filter(pk=manager.pk).update(is_staff=False)
        self.assertEqual([data["rating"] for _, data in self.events()], [None])
        announce_end(self.ann.pk, {answer.pk: Closing(answer.State.COMPLETE, NOTHING_FITS)})
        self.assertEqual([event for event, _ in self.events()], ["answer.completed"])

    def test_an_event_of_a_transaction_that_fails_is_told_to_nobody(self):
        self.endpoint(self.ann, "document.deleted")
        document = make_document("a.md", owner=self.ann)
        with (
            patch("ingestion.deletion.delete_passages", side_effect=ValueError),
            self.assertRaises(ValueError),
        ):
            documents.delete_document(document)
        self.assertFalse(WebhookDelivery.objects.exists())

    def test_a_disabled_account_hears_nothing(self):
        endpoint = self.endpoint(self.ann, "document.ready")
        self.add(owner=self.ann)
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        self.assertEqual(self.events(), [])
        self.assertEqual(endpoint.deliveries.get().state, "failed")
        self.add(owner=self.ann, name="b.md")
        self.assertEqual(endpoint.deliveries.count(), 1)


class SendingTests(WebhookCase):
    def setUp(self):
        super().setUp()
        self.hook = self.endpoint(self.ann, "document.ready")

    def send(self, event=webhooks.TEST):
        delivery = webhooks.write_down(self.hook, event, {"webhook_id": "1"})
        self.deliver()
        delivery.refresh_from_db()
        self.hook.refresh_from_db()
        return delivery

    def attempt(self, delivery):
        WebhookEndpoint.objects.update(paused_until=None)
        WebhookDelivery.objects.filter(state="waiting").update(next_at=timezone.now())
        self.deliver()
        delivery.refresh_from_db()
        self.hook.refresh_from_db()
        return delivery

    def test_a_message_is_signed_so_that_the_receiver_of_the_docs_takes_it_and_no_changed_one(self):
        delivery = self.send()
        self.assertEqual((delivery.state, delivery.status_code, delivery.attempts), ("delivered", 204, 1))
        headers, body = self.server.got[0]
        self.assertEqual(RECEIVER.verify(self.secret, headers, body)["type"], "webhook.test")
        self.assertEqual(headers["webhook-id"], f"msg_{delivery.pk.hex}")
        for secret, sent, at in (
            (secrets.new_secret(), body, None),
            (self.secret, body + b" ", None),
            (self.secret, body, time.time() + 301),
        ):
            with self.assertRaises(ValueError):
                RECEIVER.verify(secret, headers, sent, at)

    def test_a_replaced_secret_signs_for_a_day_beside_the_new_one(self):
        former, self.secret = self.secret, secrets.new_secret()
        self.hook.former_secret, self.hook.secret = self.hook.secret, secrets.encrypt(self.secret)
        self.hook.former_secret_until = timezone.now() + timedelta(hours=1)
        self.hook.save()
        self.send()
        headers, body = self.server.got[0]
        for secret in (former, self.secret):
            RECEIVER.verify(secret, headers, body)
        WebhookEndpoint.objects.update(former_secret_until=timezone.now())
        self.send()
        with self.assertRaises(ValueError):
            RECEIVER.verify(former, *self.server.got[1])

    @pytest.mark.slow
    def test_failures_are_tried_again_ever_later_and_then_given_up(self):
        self.server.status = 500
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: delivery.data}):
            delivery = self.send("document.ready")
            self.assertEqual((delivery.state, delivery.detail), ("waiting", "It answered 500."))
            waits = []
            while delivery.state == "waiting":
                waits.append((delivery.next_at - delivery.attempted_at).total_seconds())
                self.assertEqual(self.deliver(), [])
                self.attempt(delivery)
            self.assertEqual(len(waits), len(sending.RETRY_DELAYS))
            self.assertEqual(waits, sorted(waits))
            self.assertEqual((delivery.state, delivery.attempts), ("failed", len(sending.RETRY_DELAYS) + 1))
            self.server.status = 200
            webhooks.replay(WebhookDelivery.objects.filter(pk=delivery.pk))
            self.assertEqual(self.attempt(delivery).state, "delivered")
        self.assertEqual(self.server.got[0][0]["webhook-id"], self.server.got[-1][0]["webhook-id"])
        self.assertIsNone(self.hook.failing_since)

    def test_one_event_that_is_refused_holds_up_no_other(self):
        self.server.status = 500
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: delivery.data}):
            self.send("document.ready")
        self.server.status = 204
        self.assertEqual(self.send().state, "delivered")

    def test_an_endpoint_that_does_not_answer_is_left_alone_for_a_while(self):
        WebhookEndpoint.objects.update(url="http://127.0.0.1:1/")
        first = self.send()
        self.assertEqual(first.detail, "The connection failed (ConnectError).")
        self.assertGreater(self.hook.paused_until, timezone.now() + timedelta(seconds=20))
        second = self.send()
        self.assertEqual((second.state, second.attempts), ("waiting", 0))
        WebhookEndpoint.objects.update(url=f"http://127.0.0.1:{self.server.server_port}/")
        webhooks.write_test(self.hook)
        self.assertEqual(len(self.deliver()), 2)

    def test_an_address_that_is_gone_or_fails_for_days_is_switched_off_in_words(self):
        self.server.status = 410
        self.send()
        self.assertEqual(self.hook.reason, "It answered 410: it wants no more events.")
        self.assertFalse(self.hook.active)
        WebhookEndpoint.objects.update(active=True, failing_since=timezone.now() - timedelta(days=4))
        self.server.status = 503
        self.send()
        self.assertEqual(self.hook.reason, "Nothing was delivered for 3 days. Last: It answered 503.")

    def test_redirects_are_not_followed(self):
        other = Server()
        self.addCleanup(other.server_close)
        self.server.status, self.server.headers = 302, {"Location": f"http://127.0.0.1:{other.server_port}/"}
        self.assertEqual(self.send().detail, "It answered 302: redirects are not followed.")

    def test_a_server_that_hangs_or_drips_is_given_up_in_time(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def drip():
            connection, _ = listener.accept()
            with connection:
                try:
                    while True:
                        connection.sendall(b"H")
                        time.sleep(0.05)
                except OSError:
                    pass

        threading.Thread(target=drip, daemon=True).start()
        WebhookEndpoint.objects.update(url=f"http://127.0.0.1:{listener.getsockname()[1]}/")
        begun = time.monotonic()
        with patch.object(sending, "SECONDS", 0.5):
            delivery = self.send()
        self.assertLess(time.monotonic() - begun, HANG_SECONDS)
        self.assertIsNone(delivery.status_code)
        self.assertNotEqual(delivery.detail, "")

    def test_a_name_that_is_not_found_in_time_holds_nobody_up(self):
        WebhookEndpoint.objects.update(url="https://slow.example.org/")
        over = threading.Event()
        self.addCleanup(over.set)
        with (
            patch.object(addresses, "RESOLVE_SECONDS", 0.2),
            patch("socket.getaddrinfo", side_effect=lambda *_, **__: [over.wait(HANG_SECONDS)][1:]),
        ):
            begun = time.monotonic()
            self.assertIn("no response", self.send().detail)
            self.assertLess(time.monotonic() - begun, HANG_SECONDS / 2)

    def test_a_certificate_that_is_not_trusted_is_said(self):
        WebhookEndpoint.objects.update(url="https://hooks.example.org/")
        error = ssl.SSLCertVerificationError("self-signed")
        cause = sending.httpx2.ConnectError("no")
        cause.__cause__ = error
        with (
            patch("socket.getaddrinfo", return_value=[(2, 1, 6, "", ("93.184.215.14", 443))]),
            patch("httpx2.AsyncHTTPTransport.handle_async_request", side_effect=cause),
        ):
            self.assertEqual(self.send().detail, "Its certificate is not valid for its name.")

    def test_a_name_that_leads_home_is_refused_and_the_checked_address_is_the_one_that_is_asked(self):
        WebhookEndpoint.objects.update(url="https://hooks.example.org/in?a=1")
        with patch("socket.getaddrinfo", return_value=[(2, 1, 6, "", ("10.0.0.1", 443))]):
            self.assertIn("CHATSITE_WEBHOOK_NETWORKS", self.send().detail)
        WebhookEndpoint.objects.update(paused_until=None)
        asked = []

        async def handle(transport, request):
            asked.append(request)
            return sending.httpx2.Response(204, request=request)

        with (
            patch("socket.getaddrinfo", return_value=[(2, 1, 6, "", ("93.184.215.14", 443))]),
            patch("httpx2.AsyncHTTPTransport.handle_async_request", handle),
        ):
            self.assertEqual(self.send().state, "delivered")
        (request,) = asked
        self.assertEqual(str(request.url), "https://93.184.215.14/in?a=1")
        self.assertEqual(request.headers["Host"], "hooks.example.org")
        self.assertEqual(request.extensions["sni_hostname"], "hooks.example.org")

    def test_what_a_worker_took_before_it_died_is_due_again_soon(self):
        delivery = webhooks.write_down(self.hook, webhooks.TEST, {})
        self.assertIsNotNone(sending.take(self.hook.pk))
        self.assertIsNone(sending.take(self.hook.pk))
        delivery.refresh_from_db()
        self.assertLessEqual(delivery.next_at, timezone.now() + sending.LEASE)
        self.assertEqual(self.attempt(delivery).state, "delivered")

    def test_a_message_that_cannot_be_put_together_is_tried_later_and_holds_up_no_other(self):
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: 1 // 0}):
            broken = webhooks.write_down(self.hook, "document.ready", {})
            self.assertEqual(self.send().state, "delivered")
        broken.refresh_from_db()
        self.assertEqual((broken.state, broken.attempts), ("waiting", 1))
        self.assertGreater(broken.next_at, timezone.now())

    def test_another_secret_key_of_the_site_is_said(self):
        with override_settings(SECRET_KEY="another" * 10):
            self.assertIn("secret key was replaced", self.send().detail)
        with override_settings(SECRET_KEY="another" * 10, SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
            self.assertEqual(self.send().state, "delivered")

    def test_old_deliveries_are_deleted(self):
        self.send()
        WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=31))
        sending.delete_old()
        self.assertFalse(WebhookDelivery.objects.exists())


@override_settings(WEBHOOK_NETWORKS=LOOPBACK)
class DispatchingTests(TransactionTestCase):
    def test_an_endpoint_that_hangs_keeps_only_its_own_messages_waiting(self):
        slow, fast = make_user("slow"), make_user("fast")
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        server = Server()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        secret = secrets.encrypt(secrets.new_secret())
        for owner, port, endpoints in (
            (slow, silent.getsockname()[1], dispatching.MAX_AT_ONCE),
            (fast, server.server_port, 1),
        ):
            for _ in range(endpoints):
                endpoint = WebhookEndpoint.objects.create(
                    owner=owner, url=f"http://127.0.0.1:{port}/", events=["document.ready"], secret=secret
                )
                for _ in range(3):
                    webhooks.write_test(endpoint)

        async def run():
            async with asyncio.timeout(HANG_SECONDS):
                dispatcher = asyncio.create_task(dispatching.send_while_running())
                for _ in range(3):
                    await asyncio.to_thread(server.arrived.acquire, timeout=HANG_SECONDS)
                dispatcher.cancel()
                await asyncio.gather(dispatcher, return_exceptions=True)

        asyncio.run(run())
        delivered = WebhookDelivery.objects.filter(endpoint__owner=fast, state="delivered")
        self.assertGreaterEqual(delivered.count(), 2)
        taken = WebhookDelivery.objects.filter(endpoint__owner=slow, next_at__gt=timezone.now())
        self.assertEqual(taken.count(), dispatching.MAX_OF_ONE_OWNER)


class WorkerTests(SimpleTestCase):
    @pytest.mark.slow
    def test_a_worker_knows_what_to_send_of_every_event(self):
        program = (
            "import chatsite.server.worker; from chatsite.accounts import webhooks; print(*webhooks._lookups)"
        )
        known = subprocess.run(
            [sys.executable, "-c", program], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
        )
        subjects = {event.partition(".")[0] for event in webhooks.Event.values}
        self.assertEqual(set(known.stdout.split()), subjects)


class AddressTests(TestCase):
    @override_settings(WEBHOOK_NETWORKS=[ip_network("10.1.0.0/16")])
    def test_addresses_of_our_own_network_are_refused_in_every_form(self):
        for address in (
            "127.0.0.1", "10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
            "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1",
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
            "2002:a00:1::1", "240.0.0.1", "198.18.0.1", "192.0.0.8", "3fff::1", "168.63.129.16",
        ):  # fmt: skip
            with self.subTest(address), self.assertRaises(addresses.Forbidden):
                addresses.check_address(ip_address(address), encrypted=True)
        for address in (
            "93.184.215.14",
            "2606:2800:21f:cb07::1",
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "::ffff:93.184.215.14",
        ):
            addresses.check_address(ip_address(address), encrypted=True)
        addresses.check_address(ip_address("10.1.2.3"), encrypted=False)
        with self.assertRaises(addresses.Forbidden):
            addresses.check_address(ip_address("93.184.215.14"), encrypted=False)

    def test_addresses_that_are_none_are_refused(self):
        for url in (
            "http://example.org/", "ftp://example.org/", "https://", "https://a:b@example.org/",
            "example.org",
            "https://127.0.0.1/", "https://[::1]/", "https://exämple.org/", "https://example.org:99999/",
            "https://example.org/ a", "https://example.org/\n", "https://[::1", "https://" + "a" * 2_000,
        ):  # fmt: skip
            with self.subTest(url), self.assertRaises(addresses.Forbidden):
                addresses.check_url(url)
        addresses.check_url("https://example.org/hooks?token=1")


class WebhookApiTests(WebhookCase):
    def setUp(self):
        super().setUp()
        _, self.key = ApiKey.objects.issue(self.ann, "hooks", scopes=["webhooks"])

    def call(self, method, path="", data=None, key=None):
        body = {} if data is None else {"data": json.dumps(data), "content_type": "application/json"}
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return getattr(self.client, method)(f"/api/webhooks{path}", headers=headers, **body)

    def make(self, **values):
        asked = {"url": f"http://127.0.0.1:{self.server.server_port}/", "events": ["document.ready"]} | values
        return self.call("post", data=asked)

    def test_a_webhook_is_made_changed_tested_replayed_and_deleted(self):
        made = self.make(name="ERP").json()
        self.assertTrue(made["secret"].startswith("whsec_"))
        listed = self.call("get").json()
        self.assertEqual([each["id"] for each in listed], [made["id"]])
        self.assertNotIn("secret", listed[0])
        self.assertNotIn(made["secret"], str(WebhookEndpoint.objects.values_list("secret", flat=True)))
        one = f"/{made['id']}"
        tested = self.call("post", f"{one}/test")
        self.assertEqual((tested.status_code, len(self.deliver())), (202, 1))
        headers, body = self.server.got[0]
        RECEIVER.verify(made["secret"], headers, body)
        (delivery,) = self.call("get", f"{one}/deliveries").json()
        self.assertEqual((delivery["state"], delivery["message_id"]), ("delivered", headers["webhook-id"]))
        replayed = self.call("post", f"{one}/deliveries/{delivery['id']}/replay")
        self.assertEqual((replayed.status_code, len(self.deliver())), (202, 1))
        renewed = self.call("post", f"{one}/secret").json()["secret"]
        self.call("post", f"{one}/test")
        self.deliver()
        for secret in (made["secret"], renewed):
            RECEIVER.verify(secret, *self.server.got[-1])
        WebhookEndpoint.objects.update(active=False, reason="x", failing_since=timezone.now())
        changed = self.call(
            "patch", one, {"active": True, "events": ["answer.feedback", "document.ready"]}
        ).json()
        self.assertEqual((changed["active"], changed["reason"], changed["failing_since"]), (True, "", None))
        self.assertEqual(changed["events"], ["document.ready", "answer.feedback"])
        self.assertEqual(self.call("delete", one).status_code, 204)
        self.assertEqual(self.call("get", one).status_code, 404)
        log = AuditEntry.objects.filter(action="webhook_changed", actor="ann")
        self.assertEqual(log.count(), 4)

    def test_a_change_leaves_alone_what_another_did_at_the_same_time(self):
        made = self.make().json()
        one, asked = f"/{made['id']}", {"url": "https://example.org/"}

        def meanwhile(*path):
            return patch(
                "chatsite.accounts.webhooks.webhook_api.check_url",
                side_effect=lambda url: self.call("delete" if not path else "post", one + "".join(path)),
            )

        with meanwhile("/secret"):
            self.assertEqual(self.call("patch", one, asked).status_code, 200)
        endpoint = WebhookEndpoint.objects.get()
        self.assertEqual((endpoint.url, endpoint.former_secret != ""), (asked["url"], True))
        with meanwhile():
            self.assertEqual(self.call("patch", one, asked).status_code, 404)
        self.assertFalse(WebhookEndpoint.objects.exists())

    def test_a_webhook_ends_with_the_key_that_made_it_until_another_key_takes_it_over(self):
        made = self.make().json()
        ApiKey.objects.update(revoked_at=timezone.now())
        self.add(owner=self.ann)
        self.assertEqual(self.deliver(), [])
        delivery = WebhookDelivery.objects.get()
        self.assertEqual((delivery.state, "is revoked" in delivery.detail), ("failed", True))
        _, key = ApiKey.objects.issue(self.ann, "new", scopes=["webhooks"])
        self.assertEqual(self.call("patch", f"/{made['id']}", {}, key).status_code, 200)
        webhooks.replay(WebhookDelivery.objects.all())
        self.assertEqual(len(self.deliver()), 1)

    def test_bad_input_is_refused_with_its_member(self):
        for values, member in (
            ({"url": "http://example.com/"}, None),
            ({"url": "https://10.0.0.1/"}, "/url"),
            ({"url": "ftp://127.0.0.1/"}, "/url"),
            ({"events": []}, "/events"),
            ({"events": ["document.read"]}, "/events/0"),
            ({"events": "document.ready"}, "/events"),
            ({"active": "yes"}, "/active"),
            ({"name": "x" * 101}, "/name"),
        ):
            with self.subTest(values):
                refused = self.make(**values)
                if member:
                    self.assertEqual(
                        (refused.status_code, refused.json()["errors"][0]["pointer"]), (400, member)
                    )
        WebhookEndpoint.objects.all().delete()
        for _ in range(10):
            self.assertEqual(self.make().status_code, 201)
        self.assertEqual(self.make().status_code, 409)

    def test_others_and_keys_without_the_scope_find_nothing(self):
        made = self.make().json()
        delivery = self.call("post", f"/{made['id']}/test").json()
        _, foreign = ApiKey.objects.issue(self.bob, "hooks", scopes=["webhooks"])
        _, narrow = ApiKey.objects.issue(self.ann, "chat", scopes=["chat", "documents:write"])
        one = f"/{made['id']}"
        for method, path in (
            ("get", one),
            ("patch", one),
            ("delete", one),
            ("post", f"{one}/secret"),
            ("post", f"{one}/test"),
            ("get", f"{one}/deliveries"),
            ("post", f"{one}/deliveries/{delivery['id']}/replay"),
        ):
            data = {} if method in ("patch", "post") else None
            self.assertEqual(self.call(method, path, data, foreign).status_code, 404, path)
            self.assertEqual(self.call(method, path, data, narrow).status_code, 403, path)
        self.assertEqual(self.call("get", key=foreign).json(), [])
        self.assertEqual(self.call("get", key=narrow).status_code, 403)

    def test_staff_see_hosts_only_switch_off_and_send_again(self):
        made = self.make(url=f"http://127.0.0.1:{self.server.server_port}/token-in-the-path").json()
        self.server.status = 500
        self.call("post", f"/{made['id']}/test")
        self.deliver()
        self.server.status = 204
        root = User.objects.create_superuser("root")
        self.client.force_login(root)
        page = "/admin/accounts/webhookendpoint/"
        for path in (page, f"{page}{made['id']}/change/"):
            shown = self.client.get(path)
            self.assertContains(shown, "127.0.0.1")
            self.assertNotContains(shown, "token-in-the-path")
        self.assertContains(shown, "It answered 500.")
        chosen = {"_selected_action": made["id"]}
        self.client.post(page, {"action": "send_again", **chosen})
        self.assertEqual(len(self.deliver()), 1)
        self.client.post(page, {"action": "switch_off", **chosen})
        self.assertFalse(WebhookEndpoint.objects.get().active)
        self.assertEqual(AuditEntry.objects.filter(action="webhook_changed", actor="root").count(), 1)
