"""`manage.py runserver`: the development server.

It supports reloading, WebSockets and Django's debug page. It uses daphne, which is only installed in the
development environment. `manage.py up` is the server everywhere else.
"""

import asyncio
import os
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from chatsite.demo import create_demo, demo_accounts
from chatsite.http.asgi_types import Application, Message, Receive, Scope, Send
from chatsite.management.commands.work import workers
from chatsite.server import database_setup
from chatsite.server.processes import Children
from chatsite.server.refusal import StartRefused

try:
    from daphne.management.commands import runserver
except ModuleNotFoundError:
    raise ImproperlyConfigured(
        "The development server needs the developers' environment: run `make dev`."
    ) from None


class Command(runserver.Command):  # type: ignore[misc]  # daphne has no types
    help = "Start the development server and an ingestion worker; both restart when the code changes."

    def handle(self, *args: Any, **options: Any) -> None:
        if os.environ.get(DJANGO_AUTORELOAD_ENV) != "true":  # once, not at every reload
            self._prepare_database()
        super().handle(*args, **options)

    def inner_run(self, *args: Any, **options: Any) -> None:
        connections.close_all()
        children = Children()
        try:
            # The worker is a child of the reloaded process: the kernel ends it when that process is replaced.
            children.add(workers(1))
            super().inner_run(*args, **options)
        finally:
            children.close()

    def get_application(self, options: dict[str, Any]) -> Application:
        """The ASGI application with its lifespan.

        ServeStatic's middleware serves static files, as in production.
        """
        return WithLifespan(runserver.get_default_application())

    def _prepare_database(self) -> None:
        try:
            with database_setup.start_lock(database_setup.parameters()):
                database_setup.migrate()
                if settings.EMBEDDED_DATABASE and settings.DEMO:
                    create_demo()
        except StartRefused as error:
            sys.exit(str(error))
        for account in demo_accounts():
            self.stdout.write(f"  {account.username:<10} {account.password}")


class WithLifespan:
    """Starts the application's lifespan at the first connection, because daphne does not support it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lifespan: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._lifespan is None:
            self._lifespan = asyncio.create_task(self._start())
        await self._application(scope, receive, send)

    async def _start(self) -> None:
        started = False

        async def receive() -> Message:
            nonlocal started
            if started:
                await asyncio.Event().wait()  # the process ends without a shutdown event
            started = True
            return {"type": "lifespan.startup"}

        async def send(message: Message) -> None:
            pass

        await self._application({"type": "lifespan", "state": {}}, receive, send)
