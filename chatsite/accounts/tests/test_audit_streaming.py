"""New entries of the audit log on their way to a syslog server and a webhook."""

import contextlib
import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

from django.core.checks import run_checks
from django.test import TestCase, override_settings

from chatsite.accounts.audit import audit_stream, chain, record
from chatsite.accounts.models import AuditDelivery, AuditEntry
from chatsite.tests.limits import HANG_SECONDS
from ingestion.tests.factories import make_user

FRAME = re.compile(rb"(\d+) ")


class Webhook(ThreadingHTTPServer):
    """A server that records requests, and answers with `status`."""

    daemon_threads = True

    def __init__(self):
        self.bodies, self.status, self.location, self.drips = [], 204, "", False
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.drips:  # an endless answer
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while self.server.drips:
                    self.wfile.write(b"X")
                    time.sleep(0.05)
            return
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


def frames(data):
    """The messages of a stream in which each follows its length."""
    found = []
    while data:
        length = FRAME.match(data)
        start = length.end()
        found.append(data[start : start + int(length[1])])
        data = data[start + int(length[1]) :]
    return found


class StreamingTests(TestCase):
    def setUp(self):
        self.ada = make_user("ada")

    def entry(self, subject, action=AuditEntry.Action.SEARCH_AS):
        record(action, actor=self.ada, subject=subject)
        chain.seal_new()

    def webhook_server(self):
        server = Webhook()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def webhook(self):
        server = self.webhook_server()
        override = override_settings(AUDIT_WEBHOOK=f"http://127.0.0.1:{server.server_port}/in")
        override.enable()
        self.addCleanup(override.disable)
        return server

    def test_a_webhook_gets_each_entry_once_and_only_new_ones(self):
        self.entry("before it was set")
        server = self.webhook()
        self.assertEqual(audit_stream.deliver(), 0)
        self.entry("first")
        self.entry("Zweite – ü")
        self.assertEqual(audit_stream.deliver(), 2)
        self.assertEqual(audit_stream.deliver(), 0)
        events = [json.loads(line) for line in server.bodies[0].decode().splitlines()]
        self.assertEqual([event["unmapped"]["subject"] for event in events], ["first", "Zweite – ü"])

    def test_a_failed_delivery_is_sent_again(self):
        server = self.webhook()
        audit_stream.deliver()
        server.status = 503
        self.entry("kept")
        with self.assertLogs("chatsite.accounts.audit.audit_stream", "WARNING"):
            self.assertEqual(audit_stream.deliver(), 0)
        server.status = 200
        self.assertEqual(audit_stream.deliver(), 1)
        self.assertEqual(server.bodies[0], server.bodies[1])

    def test_an_endless_response_does_not_block_other_deliveries(self):
        server = self.webhook()
        audit_stream.deliver()
        self.entry("kept")
        server.drips = True
        with (
            patch.object(audit_stream, "TIMEOUT", 0.5),
            self.assertLogs("chatsite.accounts.audit.audit_stream"),
        ):
            begun = time.monotonic()
            self.assertEqual(audit_stream.deliver(), 0)
        self.assertLess(time.monotonic() - begun, HANG_SECONDS)
        server.drips = False
        self.assertEqual(audit_stream.deliver(), 1)

    def test_a_redirect_is_a_failure_and_is_not_followed(self):
        server, inner = self.webhook(), self.webhook_server()
        audit_stream.deliver()
        self.entry("kept")
        server.status, server.location = 307, f"http://127.0.0.1:{inner.server_port}/in"
        with self.assertLogs("chatsite.accounts.audit.audit_stream", "WARNING"):
            self.assertEqual(audit_stream.deliver(), 0)
        self.assertEqual(inner.bodies, [])

    def test_a_syslog_server_gets_messages_of_rfc_5424(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(HANG_SECONDS)
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            with override_settings(AUDIT_SYSLOG=address):
                audit_stream.deliver()
                self.entry("first")
                self.entry("wrong password", AuditEntry.Action.SIGN_IN_REFUSED)
                self.assertEqual(audit_stream.deliver(), 2)
            connection, _ = server.accept()
            with connection:
                connection.settimeout(HANG_SECONDS)
                data = b""
                while piece := connection.recv(65_536):
                    data += piece
        first, refused = frames(data)
        self.assertRegex(first, rb"^<110>1 \d{4}-\d\d-\d\dT[\d:.]+\+00:00 \S+ chatsite - search_as - \{")
        self.assertTrue(refused.startswith(b"<108>1 "))
        self.assertEqual(json.loads(first.partition(b" - {")[2].join((b"{", b"")))["class_uid"], 6001)

    def test_a_syslog_server_may_take_datagrams(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            server.settimeout(HANG_SECONDS)
            with override_settings(AUDIT_SYSLOG=f"udp://127.0.0.1:{server.getsockname()[1]}"):
                audit_stream.deliver()
                self.entry("first")
                self.assertEqual(audit_stream.deliver(), 1)
            self.assertIn(b'"subject": "first"', server.recv(65_536))

    def test_an_unavailable_server_blocks_nothing_and_gets_all_entries_later(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with override_settings(AUDIT_SYSLOG=address):
            audit_stream.deliver()
            self.entry("kept")
            with self.assertLogs("chatsite.accounts.audit.audit_stream", "WARNING"):
                audit_stream.deliver()
            self.assertLess(AuditDelivery.objects.get().position, 1)
        audit_stream.deliver()
        self.assertFalse(AuditDelivery.objects.exists())

    def test_invalid_addresses_are_named(self):
        for name, value in (
            ("AUDIT_SYSLOG", "log.example.org"),
            ("AUDIT_SYSLOG", "tcp://:514"),
            ("AUDIT_SYSLOG", "tcp://log.example.org:many"),
            ("AUDIT_WEBHOOK", "http://siem.example.org/in"),
            ("AUDIT_WEBHOOK", "siem"),
        ):
            with self.subTest(value), override_settings(**{name: value}):
                found = [problem.msg for problem in run_checks() if problem.id == "chatsite.E053"]
                self.assertEqual(len(found), 1)
                self.assertIn(f"CHATSITE_{name}", found[0])
        with override_settings(
            AUDIT_SYSLOG="udp://log.example.org", AUDIT_WEBHOOK="https://siem.example.org/in"
        ):
            self.assertEqual([problem for problem in run_checks() if problem.id == "chatsite.E053"], [])
