"""An OpenAI-compatible server on 127.0.0.1 whose behaviour, including faults, is scripted by tests.

    with FakeOpenAI() as fake:
        fake.script("stall", answer("Hello"))      # for the next streams; all later ones succeed
        fake.url, fake.requests[0].body, fake.requests[0].closed.wait(1)

For a site in another process: `python -m chat.tests.fake_openai PORT`, `POST /_script` with a JSON list of
names (see upstream_faults.FAULTS; `{"words": "Hello you", "pause": 0.1}` is an answer), `GET /_requests`.
"""

import asyncio
import base64
import json
import re
import struct
import sys
import threading
import time
from urllib.parse import urlsplit

from chat.tests.upstream_faults import FAULTS, Exchange, Request, answer, completion, good

MARK = re.compile(r"\(case ([^()]+)\)")
SIDE = {"title of at most": "A title", "short questions": "What then?\nAnd why?\nWho decides?"}


class FakeOpenAI:
    """Serves in a thread of its own from `__enter__` to `__exit__`."""

    def __init__(self, port=0):
        self.port = port
        self.requests = []
        self.asked = threading.Event()  # set by the next request
        self.side = completion_for  # responds to calls without a stream
        self.vector_value = 0.1  # every number of every embedding
        self.dimensions = None  # of an embedding; None: those of the request
        self.marked = {}  # behaviours for questions with a mark such as “(case stall)”
        self.embeddings = {}  # responds to texts with a mark
        self._script = []
        self._ready = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def streams(self):
        return [request for request in self.requests if request.streaming]

    def script(self, *behaviours):
        """Script the next streams, by names of FAULTS or functions of an Exchange. Later ones succeed."""
        self._script = behaviours_of(behaviours)

    def script_for(self, mark, *behaviours):
        """Script the streams for questions with this mark, whatever else is asked at the same time."""
        self.marked[mark] = behaviours_of(behaviours)

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *exception):
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(5)

    async def serve(self):
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()
        for request in self.requests:
            request.closed.set()

    async def _connected(self, reader, writer):
        try:
            request = await _read(reader)
            if request is None:
                return
            watch = asyncio.ensure_future(_watch(reader, request))
            try:
                await self._answer(Exchange(self, request, writer))
            except ConnectionError:
                request.closed.set()
            finally:
                watch.cancel()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, exchange):
        request = exchange.request
        if request.path == "/_script":
            self.script(*(item if isinstance(item, str) else _worded(item) for item in request.body))
            return await exchange.whole(200, {})
        if request.path == "/_requests":
            return await exchange.whole(200, [vars(request) | {"closed": None} for request in self.requests])
        self.requests.append(request)
        self.asked.set()
        if request.path == "/v1/embeddings":
            return await self._embed(exchange)
        if request.path != "/v1/chat/completions":
            return await exchange.whole(404, {"error": {"message": "no such page"}})
        if not request.streaming:
            return await self.side(request)(exchange)
        script = self.marked.get(mark_of(request.prompt)) or self._script
        behave = script.pop(0) if script else good
        return await behave(exchange)

    async def _embed(self, exchange):
        body = exchange.request.body
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if behave := self.embeddings.get(mark_of(" ".join(texts))):
            return await behave(exchange)
        vector = [self.vector_value] * (self.dimensions or body.get("dimensions") or 256)
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"{len(vector)}f", *vector)).decode()
        data = [{"index": place, "embedding": vector} for place, _ in enumerate(texts)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        whole = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        return await exchange.whole(200, whole)


def behaviours_of(items):
    return [FAULTS[item] if isinstance(item, str) else item for item in items]


def mark_of(text):
    """The name in the text's last mark, or an empty string."""
    return (MARK.findall(text) or [""])[-1]


def completion_for(request):
    """Plausible titles, follow-ups and search queries."""
    system = request.body["messages"][0]["content"]
    last = request.body["messages"][-1]["content"]
    return completion(next((text for mark, text in SIDE.items() if mark in system), last))


def _worded(item):
    return answer(*re.findall(r"\s*\S+", item["words"]), pause=item.get("pause", 0))


async def _read(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, target, _ = first.split()
    path = urlsplit(target).path  # a request to a proxy has an absolute URL
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, json.loads(body or b"{}"))


async def _watch(reader, request):
    """Note when the caller closes its end. Nothing else can arrive on this connection."""
    try:
        while await reader.read(1000):
            pass
    except ConnectionError:
        pass
    request.closed_at = time.monotonic()
    request.closed.set()


def main():
    fake = FakeOpenAI(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    with fake:
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
