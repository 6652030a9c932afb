"""A server of embeddings on 127.0.0.1 that answers as told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Answers `/v1/embeddings` with what `reply(texts)` gives: a list of vectors, or (status, body)."""

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.asked = reply, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        answer = self.server.reply(body["input"])
        status, data = answer if isinstance(answer, tuple) else (200, None)
        if data is None:
            items = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(answer)]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            data = json.dumps({"object": "list", "data": items[::-1], "model": "m", "usage": usage})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, *arguments):
        pass
