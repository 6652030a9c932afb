"""The scripted model server that chatsite and Open WebUI use in the benchmark.

It answers with 75 words, at 30 words a second, and cites the first source. If two versions of a document are
among the sources, it cites both.
"""

import itertools
import json
import math
import re
import threading
import time
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = (
    "Up to five days may be carried into the next year without asking {cite}. Carried days must be used "
    "by 31 March; after that date they lapse and are not paid out {cite}. Days carried over are always "
    "used first {cite}. In exceptional cases up to ten days in total may be carried over {cite}. Ask on "
    "form PF-14 and have it approved by your head of department no later than 30 November {cite}. A "
    "late form is not considered {cite}."
)
WORDS_PER_SECOND = 30
DIMENSIONS = 384
# Two versions of a document are cited in turn.
EDITION = re.compile(r"^(\S*locker-202[56]\S*): |<source id=\\?\"(\d+)\\?\" name=\\?\"locker-202[56]", re.M)
# The first source in the portal's prompt, or in Open WebUI's prompt (in the latter, that of the attached
# file, if any).
SOURCE = re.compile(r"^Sources:\n(\S+): |<source id=\\?\"(\d+)\\?\" name=\\?\"locker", re.M)


def embed(text):
    """The normalised counts of the text's words, hashed to DIMENSIONS."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    length = math.hypot(*vector) or 1.0
    return [each / length for each in vector]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "bench"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            rows = [
                {"object": "embedding", "index": n, "embedding": embed(text)} for n, text in enumerate(texts)
            ]
            self.reply({"object": "list", "model": "scripted", "data": rows})
            return
        if not body.get("stream"):
            message = {"role": "assistant", "content": "Carrying leave over"}
            self.reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            return
        said = json.dumps(body["messages"], ensure_ascii=False).replace("\\n", "\n")
        found = SOURCE.search(said)
        cited = list(dict.fromkeys(label or number for label, number in EDITION.findall(said)))
        cited = cited or [found[1] or found[2] if found else "1"]
        cites = itertools.cycle(cited)
        text = re.sub("{cite}", lambda _: f"[{next(cites)}]", ANSWER)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in re.findall(r"\s*\S+", text):
            self.send_chunk({"content": piece})
            time.sleep(1 / WORDS_PER_SECOND)
        self.send_chunk({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def send_chunk(self, delta, reason=None):
        chunk = {
            "id": "1",
            "object": "chat.completion.chunk",
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

    def reply(self, body):
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextmanager
def scripted_model():
    """The base address of the model, for both products' settings."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
