"""Webhooks: who gets which events, how they are signed and sent, and what happens if the receiver fails."""

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
from ipaddress import ip_network
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
from chatsite.accounts.models import User, WebhookDelivery, WebhookEndpoint
from chatsite.accounts.principal import Principal
from chatsite.accounts.webhooks import addresses, dispatching, secrets, sending
from chatsite.tests.limits import HANG_SECONDS
from history import feedback
from history.recording import AnswerOutcome
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

LOOPBACK = [ip_network("127.0.0.0/8")]
PATH = Path(settings.BASE_DIR) / "docs" / "integrations" / "webhooks.py"
RECEIVER = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("receiver", PATH))
spec.loader.exec_module(RECEIVER)


class Server(ThreadingHTTPServer):
    """A server that records requests, and answers with `status` and `headers`."""

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
        """Make every due attempt; return the requests that were sent, newest last."""
        before = len(self.server.got)
        for endpoint in WebhookEndpoint.objects.order_by("created_at"):
            while (attempt := sending.take(endpoint.pk)) is not None:
                sending.store(attempt, asyncio.run(sending.send(attempt)))
        return [json.loads(body) for _, body in self.server.got[before:]]

    def events(self):
        return [(event["type"], event["data"]) for event in self.deliver()]


@pytest.mark.slow
class WhoHearsTests(WebhookCase):
    def test_readers_of_a_document_get_its_events(self):
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

    def test_failures_are_sent_and_unsubscribed_events_are_not(self):
        self.endpoint(self.ann, "document.failed")
        document = self.add("a.pdf", b"no PDF", owner=self.ann)
        self.assertEqual(document.status, "failed")
        ((event, data),) = self.events()
        self.assertEqual((event, data["status"]), ("document.failed", "failed"))

    def test_events_of_documents_closed_meanwhile_are_neither_sent_nor_listed(self):
        endpoint = self.endpoint(self.bob, "document.ready")
        document = self.add(owner=self.ann, audience=Audience(user_ids=frozenset({self.bob.pk})))
        set_audience(document, Audience())
        self.assertEqual(self.events(), [])
        self.assertFalse(endpoint.deliveries.exists())

    def test_answers_are_reported_to_the_asker_and_unanswered_questions_to_managers_without_text(self):
        document = make_document("a.md", owner=self.ann)
        _, answer = answered(self.ann, document)
        manager = make_user("manager", is_staff=True)
        manager.user_permissions.add(
            *Permission.objects.filter(codename__in=["view_unanswered", "view_feedback"])
        )
        for person in (self.ann, self.bob, manager):
            self.endpoint(person, "answer.completed", "question.unanswered", "answer.feedback")
        announce_end(self.ann.pk, {answer.pk: AnswerOutcome(answer.State.COMPLETE, NOTHING_FITS)})
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
        announce_end(self.ann.pk, {answer.pk: AnswerOutcome(answer.State.COMPLETE, NOTHING_FITS)})
        self.assertEqual([event for event, _ in self.events()], ["answer.completed"])

    def test_an_event_of_a_rolled_back_transaction_is_not_sent(self):
        self.endpoint(self.ann, "document.deleted")
        document = make_document("a.md", owner=self.ann)
        with (
            patch("ingestion.deletion.delete_passages", side_effect=ValueError),
            self.assertRaises(ValueError),
        ):
            documents.delete_document(document)
        self.assertFalse(WebhookDelivery.objects.exists())

    def test_a_disabled_account_gets_no_events(self):
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
        delivery = webhooks.enqueue(self.hook, event, {"webhook_id": "1"})
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

    def test_the_documented_receiver_accepts_a_signed_message_and_no_changed_one(self):
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

    def test_a_replaced_secret_stays_valid_for_a_day_beside_the_new_one(self):
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
    def test_failures_are_retried_with_growing_delays_and_then_given_up(self):
        self.server.status = 500
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: delivery.data}):
            delivery = self.send("document.ready")
            self.assertEqual((delivery.state, delivery.detail), ("waiting", "The server responded with 500."))
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

    def test_a_refused_event_does_not_delay_others(self):
        self.server.status = 500
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: delivery.data}):
            self.send("document.ready")
        self.server.status = 204
        self.assertEqual(self.send().state, "delivered")

    def test_an_endpoint_that_does_not_answer_is_paused(self):
        WebhookEndpoint.objects.update(url="http://127.0.0.1:1/")
        first = self.send()
        self.assertEqual(first.detail, "The connection failed (ConnectError).")
        self.assertGreater(self.hook.paused_until, timezone.now() + timedelta(seconds=20))
        second = self.send()
        self.assertEqual((second.state, second.attempts), ("waiting", 0))
        WebhookEndpoint.objects.update(url=f"http://127.0.0.1:{self.server.server_port}/")
        webhooks.enqueue_test(self.hook)
        self.assertEqual(len(self.deliver()), 2)

    def test_an_endpoint_that_is_gone_or_fails_for_days_is_disabled_with_a_reason(self):
        self.server.status = 410
        self.send()
        self.assertEqual(self.hook.reason, "The server responded with 410: it wants no more events.")
        self.assertFalse(self.hook.active)
        WebhookEndpoint.objects.update(active=True, failing_since=timezone.now() - timedelta(days=4))
        self.server.status = 503
        self.send()
        self.assertEqual(
            self.hook.reason, "Nothing was delivered for 3 days. Last: The server responded with 503."
        )

    def test_redirects_are_not_followed(self):
        other = Server()
        self.addCleanup(other.server_close)
        self.server.status, self.server.headers = 302, {"Location": f"http://127.0.0.1:{other.server_port}/"}
        self.assertEqual(self.send().detail, "The server responded with 302: redirects are not followed.")

    def test_a_hanging_or_dripping_server_is_given_up_in_time(self):
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

    def test_a_slow_name_lookup_does_not_delay_others(self):
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

    def test_an_untrusted_certificate_is_reported(self):
        WebhookEndpoint.objects.update(url="https://hooks.example.org/")
        error = ssl.SSLCertVerificationError("self-signed")
        cause = sending.httpx2.ConnectError("no")
        cause.__cause__ = error
        with (
            patch("socket.getaddrinfo", return_value=[(2, 1, 6, "", ("93.184.215.14", 443))]),
            patch("httpx2.AsyncHTTPTransport.handle_async_request", side_effect=cause),
        ):
            self.assertEqual(self.send().detail, "The server's certificate is not valid for its name.")

    def test_a_name_of_an_internal_address_is_refused_and_the_checked_address_is_used(self):
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

    def test_deliveries_of_a_dead_worker_are_due_again_soon(self):
        delivery = webhooks.enqueue(self.hook, webhooks.TEST, {})
        self.assertIsNotNone(sending.take(self.hook.pk))
        self.assertIsNone(sending.take(self.hook.pk))
        delivery.refresh_from_db()
        self.assertLessEqual(delivery.next_at, timezone.now() + sending.LEASE)
        self.assertEqual(self.attempt(delivery).state, "delivered")

    def test_a_message_that_cannot_be_built_is_retried_and_does_not_delay_others(self):
        with patch.dict(webhooks._lookups, {"document": lambda owner, delivery: 1 // 0}):
            broken = webhooks.enqueue(self.hook, "document.ready", {})
            self.assertEqual(self.send().state, "delivered")
        broken.refresh_from_db()
        self.assertEqual((broken.state, broken.attempts), ("waiting", 1))
        self.assertGreater(broken.next_at, timezone.now())

    def test_a_changed_secret_key_of_the_site_is_reported(self):
        with override_settings(SECRET_KEY="another" * 10):
            self.assertIn("secret key was replaced", self.send().detail)
        with override_settings(SECRET_KEY="another" * 10, SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
            self.assertEqual(self.send().state, "delivered")

    def test_old_deliveries_are_deleted(self):
        self.send()
        WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=31))
        sending.delete_old()
        self.assertFalse(WebhookDelivery.objects.exists())

    def test_the_oldest_of_too_many_waiting_deliveries_are_given_up_and_can_be_replayed(self):
        other = self.endpoint(self.bob, "document.ready")
        kept = webhooks.enqueue(other, webhooks.TEST, {})
        waiting = [webhooks.enqueue(self.hook, webhooks.TEST, {"webhook_id": str(n)}) for n in range(5)]
        with patch.object(sending, "MAX_WAITING", 3):
            sending.give_up_oldest()
        for each in (kept, *waiting):
            each.refresh_from_db()
        self.assertEqual([each.state for each in waiting], ["failed"] * 2 + ["waiting"] * 3)
        self.assertEqual(kept.state, "waiting")
        self.assertIn("More than 3 messages were waiting", waiting[0].detail)
        self.assertEqual(webhooks.replay(self.hook.deliveries.all()), 2)
        self.assertEqual(len(self.deliver()), 6)


@override_settings(WEBHOOK_NETWORKS=LOOPBACK)
class DispatchingTests(TransactionTestCase):
    @pytest.mark.slow
    def test_a_hanging_endpoint_delays_only_its_own_messages(self):
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
                    webhooks.enqueue_test(endpoint)

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
    def test_a_worker_can_build_every_event(self):
        program = (
            "import chatsite.server.worker; from chatsite.accounts import webhooks; print(*webhooks._lookups)"
        )
        known = subprocess.run(
            [sys.executable, "-c", program], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
        )
        subjects = {event.partition(".")[0] for event in webhooks.Event.values}
        self.assertEqual(set(known.stdout.split()), subjects)
