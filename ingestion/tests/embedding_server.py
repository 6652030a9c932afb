"""An embedding server on 127.0.0.1 whose answers are scripted."""

import json
import re
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from django.test import override_settings


def by_words(dimensions):
    """A model that gives similar vectors to texts with common words."""

    def reply(texts):
        vectors = []
        for text in texts:
            vector = [0.001] * dimensions
            for word in re.findall(r"\w+", text.lower()):
                vector[zlib.crc32(word.encode()) % dimensions] += 1
            vectors.append(vector)
        return vectors

    return reply


class Server(ThreadingHTTPServer):
    """Answers `/v1/embeddings` with `reply(texts)`: vectors, or (status, body, headers)."""

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.asked = reply, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def texts(self):
        return [text for body in self.asked for text in body["input"]]

    def settings(self, model="model", dimensions=3, **more):
        """The settings of a site that uses this server."""
        return override_settings(
            EMBEDDING_MODEL=model,
            EMBEDDING_DIMENSIONS=dimensions,
            OPENAI_BASE_URL=self.url,
            OPENAI_API_KEY="sk-secret",
            **more,
        )

    def stop(self):
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        answer = self.server.reply(body["input"])
        status, data, *headers = answer if isinstance(answer, tuple) else (200, None)
        if data is None:
            items = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(answer)]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            data = json.dumps({"object": "list", "data": items[::-1], "model": "m", "usage": usage})
        self.send_response(status)
        for name, value in headers[0].items() if headers else ():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data.encode())
        except ConnectionError:
            pass  # the client has closed the connection

    def log_message(self, *arguments):
        pass
