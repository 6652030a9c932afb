"""Starts the runs of API views, even if the caller disconnects meanwhile."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request

from chat import runs
from chat.engine import AcceptedRun
from chat.limits import ConnectionSlot, connection_limiter
from chat.requests import RunRequest
from chatsite.accounts.principal import Principal
from chatsite.db.threads import request_may_wait
from chatsite.dependency_internals import django_request
from chatsite.http.address_limit import release_slot

from .api_view import ProtocolView

T = TypeVar("T")


class StartingView(ProtocolView):
    """A view that may start a run, for which it reserves one of the caller's connection slots."""

    slot: ConnectionSlot | None = None

    async def start(
        self, request: HttpRequest, act: Callable[[Request], tuple[T, AcceptedRun] | HttpResponseBase]
    ) -> tuple[T, AcceptedRun] | HttpResponseBase:
        """Call `act` with the authenticated request, and start the run that `act` begins.

        Returns the result of `act`, or a response if no run begins. If the caller disconnects meanwhile, the
        run is started anyway.
        """
        starting = asyncio.create_task(self._started(request, act))
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda _: self._release())
            raise
        if not isinstance(started, HttpResponseBase):
            request_may_wait()
            release_slot()
        return started

    async def _started(
        self, request: HttpRequest, act: Callable[[Request], tuple[T, AcceptedRun] | HttpResponseBase]
    ) -> tuple[T, AcceptedRun] | HttpResponseBase:
        started = await self.authenticate(request, act)
        if not isinstance(started, HttpResponseBase):
            runs.start(started[1])
        return started

    def begin(self, request: Request, asked: RunRequest, key: str | None = None) -> AcceptedRun:
        """Store a queued run (see `runs.begin`), and reserve a slot for its response."""
        principal = cast(Principal, request.auth)
        identifier = getattr(django_request(request), "request_id", "")

        def reserve(again: bool) -> None:
            self.slot = self.slot or connection_limiter.reserve(principal.user_id, again=again)

        try:
            return runs.begin(principal, asked, idempotency_key=key, request_id=identifier, reserve=reserve)
        except BaseException:
            self._release()
            raise

    def take_slot(self) -> ConnectionSlot:
        """Return the reserved slot, which the caller must then release."""
        slot, self.slot = self.slot, None
        assert slot
        return slot

    def _release(self) -> None:
        if self.slot:
            self.slot.release()
            self.slot = None
