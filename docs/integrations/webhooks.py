"""Receives and prints the webhooks of a site; their secret is in WEBHOOK_SECRET. Standard library only.

Messages without a valid signature, or whose time is more than five minutes off, are refused.
"""

import base64
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

TOLERANCE_SECONDS = 300
MAX_BYTES = 100_000


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Any:
    """Return the event of a request signed by the site. Raises ValueError for any other request."""
    message_id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
    if not message_id or not timestamp or not timestamp.isdecimal():
        raise ValueError("A header is missing.")
    if abs((now or time.time()) - int(timestamp)) > TOLERANCE_SECONDS:
        raise ValueError("The message is too old, or the clocks differ.")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    for signature in headers.get("webhook-signature", "").split():
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(value.encode(), expected.encode()):
            return json.loads(body)
    raise ValueError("The signature does not match the secret.")


class Receiver(BaseHTTPRequestHandler):
    seen: ClassVar[set[str]] = (
        set()
    )  # ids, because a message may come twice; store them permanently in production

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(min(length, MAX_BYTES))
        try:
            event = verify(
                os.environ["WEBHOOK_SECRET"],
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
        except ValueError as error:
            print(f"Refused: {error}", file=sys.stderr)
            self.reply(400)
            return
        if self.headers["webhook-id"] not in self.seen:
            self.seen.add(self.headers["webhook-id"])
            print(event["timestamp"], event["type"], json.dumps(event["data"]), flush=True)
        self.reply(204)  # at once, before any long work

    def reply(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8090"))), Receiver).serve_forever()
