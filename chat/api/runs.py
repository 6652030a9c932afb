"""Views that resume the event stream of a run, or stop the run, by its id."""

from typing import cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.request import Request

from chat import runs
from chat.errors import Refused
from chat.limits import ConnectionSlot, connection_limiter
from chat.protocols.framing import (
    EVENT_STREAM,
    JSON_LINES,
)
from chat.requests import InvalidRequest
from chatsite.accounts.principal import Principal
from chatsite.http.parameters import whole_number

from .api_view import (
    ProtocolView,
    check_accepted,
    refused,
)
from .streaming_responses import (
    ClosingStream,
    resumed_stream,
)

FORMATS = {"json-lines": JSON_LINES, "sse": EVENT_STREAM}
ACCEPTABLE = (
    "*/*",
    "application/*",
    "text/*",
    "application/json",
    "application/jsonl",
    JSON_LINES,
    EVENT_STREAM,
)
LARGEST = 2_000_000_000
Asked = tuple[Principal, int, str, ConnectionSlot]  # principal, last received event, media type, and slot


class RunEventsView(ProtocolView):
    """`GET /chat/runs/{id}/events`: one JSON object per line, or server-sent events."""

    methods = ("GET",)

    async def get(self, request: HttpRequest, run_id: str) -> HttpResponseBase:
        self._from_journal = not runs.is_written_here(UUID(run_id))
        asked = await self.authenticate(request, self._asked)
        if isinstance(asked, HttpResponseBase):
            return asked
        principal, after, media_type, slot = asked
        stream = resumed_stream(principal, UUID(run_id), after, media_type, slot)
        return ClosingStream(stream, media_type, slot)

    def _asked(self, request: Request) -> Asked | HttpResponseBase:
        principal = cast(Principal, request.auth)
        name = request.GET.get("format")
        if name is None:
            check_accepted(request, ACCEPTABLE)
            accepts_events = EVENT_STREAM in request.headers.get("Accept", "").lower()
            media_type = EVENT_STREAM if accepts_events else JSON_LINES
        elif name in FORMATS:
            media_type = FORMATS[name]
        else:
            raise InvalidRequest(f"“format” must be one of {', '.join(FORMATS)}.", "format")
        seen = _number(request.headers.get("Last-Event-ID", ""), "Last-Event-ID")
        after = max(seen, _number(request.GET.get("after", ""), "after"))
        run_id = UUID(self.kwargs["run_id"])
        last = runs.last_event(principal, run_id)
        if media_type == EVENT_STREAM and last is not None and 0 < last <= seen:
            return HttpResponse(status=204)  # an EventSource does not reconnect after 204
        runs.check_first_read(principal, run_id, after, from_journal=self._from_journal)
        return principal, after, media_type, connection_limiter.reserve(principal.user_id)


class StopRunView(ProtocolView):
    """`POST /chat/runs/{id}/stop`: stops a run and keeps its text so far. Idempotent."""

    async def post(self, request: HttpRequest, run_id: str) -> HttpResponseBase:
        principal = await self.authenticate(request, lambda known: cast(Principal, known.auth))
        if isinstance(principal, HttpResponseBase):
            return principal
        try:
            await runs.stop(principal, UUID(run_id))
        except Refused as refusal:
            return refused(self.protocol, refusal)
        return HttpResponse(status=204)


def _number(text: str, member: str) -> int:
    """The number of an event; 0 if empty. Raises InvalidRequest."""
    if not text:
        return 0
    number = whole_number(text, LARGEST)
    if number is None:
        raise InvalidRequest(f"“{member}” must be the number of an event.", member)
    return number
