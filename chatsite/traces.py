"""Traces for OpenTelemetry and errors for Sentry.

Each is off unless its address is configured, and needs the packages of chatsite[telemetry]. Spans describe
requests, searches, answers (with OpenTelemetry's conventions for generative AI) and the reading of documents.
They contain no content of users.
"""

import contextvars
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from django.conf import settings

try:
    import sentry_sdk
    from opentelemetry import context, propagate, trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True

T = TypeVar("T")
Value = str | int | float | list[str]
NAME = "chatsite"


def start(process: str) -> None:
    """Start exporting if an address is configured.

    `chatsite.checks.check_telemetry` ensures that the packages are installed.
    """
    if settings.TRACES_ENDPOINT:
        provider = TracerProvider(resource=Resource.create({SERVICE_NAME: f"{NAME}-{process}"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    if settings.SENTRY_DSN:
        sentry_sdk.init(
            settings.SENTRY_DSN,
            include_local_variables=False,  # they would contain questions and passages
            max_breadcrumbs=0,
            before_send=without_words,
        )


def stop() -> None:
    """Send the spans that are still queued."""
    if (
        settings.TRACES_ENDPOINT
        and INSTALLED
        and isinstance(provider := trace.get_tracer_provider(), TracerProvider)
    ):
        provider.shutdown()


@contextmanager
def request(scope: Mapping[str, Any]) -> Iterator[dict[str, Value | None]]:
    """The span of a request or socket, a child of the span that its `traceparent` names.

    The block puts the span's `name` and attributes into the yielded dictionary; None values are omitted.
    """
    attributes: dict[str, Value | None] = {}
    if not settings.TRACES_ENDPOINT:
        yield attributes
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    span = trace.get_tracer(NAME).start_span("request", propagate.extract(headers), trace.SpanKind.SERVER)
    token = context.attach(trace.set_span_in_context(span))
    try:
        yield attributes
    finally:
        context.detach(token)
        span.update_name(str(attributes.pop("name", "request")))
        _describe(span, attributes)
        span.end()


def record(name: str, seconds: float, **attributes: Value | None) -> None:
    """Record a span of this many seconds that ends now, as a child of the current span, if any.

    `__` in the name of an attribute becomes a dot.
    """
    if not settings.TRACES_ENDPOINT:
        return
    now = time.time_ns()
    span = trace.get_tracer(NAME).start_span(name, start_time=now - int(seconds * 1e9))
    _describe(span, {key.replace("__", "."): value for key, value in attributes.items()})
    span.end(now)


def only_trace() -> contextvars.Context:
    """A new context for a task, which contains only the current trace."""
    fresh = contextvars.Context()
    if settings.TRACES_ENDPOINT:
        fresh.run(context.attach, context.get_current())
    return fresh


def _describe(span: "trace.Span", attributes: Mapping[str, Value | None]) -> None:
    for name, value in attributes.items():
        if value is not None:
            span.set_attribute(name, value)
    if attributes.get("error.type"):
        span.set_status(trace.StatusCode.ERROR)


def without_words(event: Any, hint: Mapping[str, Any]) -> Any:
    """Remove users' content from an error report: URL, headers, body, account and breadcrumbs."""
    for member in ("request", "user", "breadcrumbs"):
        event.pop(member, None)
    return event
