"""The contents of traces and fault reports, which never include people's texts."""

import contextvars
import functools
import logging
from unittest import mock

import sentry_sdk
from asgiref.sync import async_to_sync
from django.test import SimpleTestCase, override_settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport
from sentry_sdk.utils import BadDsn, Dsn

from chatsite import traces
from chatsite.checks import check_telemetry
from chatsite.http.access_log import AccessLog

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "sequoia-of-a-test"


@override_settings(TRACES_ENDPOINT="http://127.0.0.1:9")
class Traces(SimpleTestCase):
    def setUp(self):
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.enterContext(mock.patch.object(trace, "get_tracer", provider.get_tracer))

    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def requested(self, status, path="/c/7/", inside=lambda: None):
        async def application(scope, receive, send):
            scope["chatsite.record"].route = "c/<conversation>/"
            inside()
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": SECRET.encode()})

        async def sent(message):
            pass

        headers = [(b"traceparent", CALLER.encode()), (b"authorization", SECRET.encode())]
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": SECRET.encode(),
            "headers": headers,
        }
        async_to_sync(AccessLog(application))(scope, None, sent)

    def test_a_request_is_a_span_of_the_callers_trace_named_by_its_url_pattern(self):
        self.requested(200)
        span = self.spans()["GET c/<conversation>/"]
        self.assertEqual(f"{span.context.trace_id:032x}", CALLER.split("-")[1])
        self.assertEqual(
            (span.attributes["http.route"], span.attributes["http.response.status_code"]),
            ("c/<conversation>/", 200),
        )
        self.assertNotIn(SECRET, span.to_json())
        self.assertTrue(span.status.is_unset)

    def test_a_server_error_marks_the_span(self):
        self.requested(503)
        self.assertEqual(self.spans()["GET c/<conversation>/"].attributes["error.type"], "503")
        self.assertFalse(self.spans()["GET c/<conversation>/"].status.is_ok)

    def test_what_a_task_of_the_request_records_is_below_it_though_the_task_inherits_nothing_else(self):
        other = contextvars.ContextVar("other", default="nothing")

        def inside():
            other.set("something")
            fresh = traces.only_trace()
            self.assertEqual(fresh.run(other.get), "nothing")
            fresh.run(traces.record, "chat small", 0.5, gen_ai__usage__input_tokens=7, error__type=None)

        self.requested(200, inside=inside)
        answer, request = self.spans()["chat small"], self.spans()["GET c/<conversation>/"]
        self.assertEqual(answer.parent.span_id, request.context.span_id)
        self.assertEqual(dict(answer.attributes), {"gen_ai.usage.input_tokens": 7})
        self.assertAlmostEqual(answer.end_time - answer.start_time, 0.5e9, delta=1e6)


class Missing(SimpleTestCase):
    @override_settings(SENTRY_DSN="https://key@faults.example.org/1")
    def test_an_address_without_the_packages_is_refused_with_a_message(self):
        self.assertEqual(check_telemetry(None), [])
        with mock.patch.object(traces, "INSTALLED", new=False):
            (error,) = check_telemetry(None)
        self.assertIn("SENTRY_DSN needs more packages", error.msg)

    def test_an_invalid_address_is_refused_and_not_repeated(self):
        for dsn in ("foo", "https://faults.example.org/1", "https://key@faults.example.org/", "key@faults/1"):
            with override_settings(SENTRY_DSN=dsn):
                (error,) = check_telemetry(None)
            self.assertEqual((error.id, dsn in error.msg), ("chatsite.E055", False), dsn)
            with self.assertRaises(BadDsn):
                Dsn(dsn)
        for dsn in ("https://key@faults.example.org/1", "http://key:secret@[::1]:9000/prefix/23"):
            with override_settings(SENTRY_DSN=dsn):
                self.assertEqual(check_telemetry(None), [], dsn)
            Dsn(dsn)
        for address, problems in (("collector:4318", ["chatsite.E054"]), ("http://collector:4318", [])):
            with override_settings(TRACES_ENDPOINT=address):
                self.assertEqual([error.id for error in check_telemetry(None)], problems)

    def test_without_an_address_nothing_needs_the_packages(self):
        with mock.patch.object(traces, "INSTALLED", new=False):
            self.assertEqual(check_telemetry(None), [])
            traces.start("web")
            traces.record("search", 0.1)


class Kept(Transport):
    envelopes = []

    def capture_envelope(self, envelope):
        self.envelopes.append(envelope)


@override_settings(SENTRY_DSN="https://key@faults.example.org/1")
class Faults(SimpleTestCase):
    def test_a_fault_is_reported_without_the_address_the_body_and_the_variables(self):
        init = functools.partial(
            sentry_sdk.init, transport=Kept, default_integrations=False, integrations=[LoggingIntegration()]
        )
        with mock.patch.object(sentry_sdk, "init", init):
            traces.start("web")
        try:
            question = SECRET
            try:
                raise ValueError("A fault of a test" + question[:0])
            except ValueError:
                logging.getLogger("chat").exception("An answer failed")
            sentry_sdk.flush()
        finally:
            sentry_sdk.get_global_scope().set_client(None)
        (envelope,) = Kept.envelopes
        sent = envelope.serialize().decode()
        self.assertIn("A fault of a test", sent)
        self.assertNotIn(SECRET, sent)
        self.assertEqual(
            traces.without_words({"request": 1, "user": 2, "level": "error"}, {}), {"level": "error"}
        )
