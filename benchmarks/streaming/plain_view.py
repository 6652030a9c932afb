"""A plain asynchronous Django view that stores the question and reads it again.

    python -m streaming.plain_view '{"dbname": …}'      prints its port

Its cost shows how much of an answer's cost is due to the machine and the framework.
"""

import json
import re
import socket
import sys
from collections.abc import AsyncGenerator

import django
import uvicorn
from django.conf import settings

PARAMETERS = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            **{
                PARAMETERS[name]: value
                for name, value in json.loads(sys.argv[1]).items()
                if name in PARAMETERS
            },
            "OPTIONS": {
                **{name: value for name, value in json.loads(sys.argv[1]).items() if name not in PARAMETERS},
                "pool": {"min_size": 4, "max_size": 20},
            },
        }
    },
    INSTALLED_APPS=["streaming"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="benchmark",
)
django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.http import HttpRequest, StreamingHttpResponse  # noqa: E402
from django.urls import path  # noqa: E402

from streaming.upstream import marker  # noqa: E402

NUMBER = re.compile(r"\((\d+)\)")


class Question(models.Model):
    """A stored question."""

    text = models.TextField()

    class Meta:
        app_label = "streaming"
        db_table = "benchmark_question"

    def __str__(self) -> str:
        return self.text


async def answer(request: HttpRequest) -> StreamingHttpResponse:
    text = json.loads(request.body)["messages"][0]["content"]
    stored = await Question.objects.acreate(text=text)
    found = await Question.objects.aget(pk=stored.pk)

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield marker(int(NUMBER.findall(found.text)[-1])).encode()

    return StreamingHttpResponse(pieces())


urlpatterns = [path("chat/stream", answer)]


def main() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Question)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(get_asgi_application(), log_level="warning", lifespan="off", loop="uvloop")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
