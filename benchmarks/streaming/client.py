"""Generates load: sends questions on separate connections, and searches responses without parsing them.

    python -m streaming.client < plan.json      prints the outcome of each as JSON

A plan has `port`, `path`, `headers` (for each question), `bodies`, `spread` (seconds over which the questions
start) and `abort` (one question in this many is aborted after three seconds; 0 for none).
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from streaming.upstream import marker

NUMBER = re.compile(r"\((\d+)\)")
END = b"0\r\n\r\n"
PATIENCE = 300.0  # seconds until a question is given up


@dataclass
class Outcome:
    """The outcome of one question.

    Times are seconds since the request was sent, or -1 for an event that never came.
    """

    number: int
    status: int = 0
    first: float = -1.0
    total: float = -1.0
    size: int = 0
    aborted: bool = False
    run: str = ""
    retry_after: str = ""
    error: str = ""


class Asking(asyncio.Protocol):
    """One question."""

    def __init__(self, number: int, request: bytes, abort_after: float) -> None:
        self.outcome = Outcome(number)
        self.ended = asyncio.get_running_loop().create_future()
        self._request, self._abort_after = request, abort_after
        self._marker = marker(number).strip().encode()
        self._read = b""
        self._begun = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._begun = time.monotonic()
        transport.write(self._request)
        if self._abort_after:
            asyncio.get_running_loop().call_later(self._abort_after, self._abort)

    def data_received(self, data: bytes) -> None:
        outcome = self.outcome
        outcome.size += len(data)
        if outcome.first < 0:
            self._read += data
            if not outcome.status:
                outcome.status = int(self._read[9:12])
                found = re.search(rb"(?i)chat-run: *([0-9a-f-]+)", self._read)
                outcome.run = found[1].decode() if found else ""
                found = re.search(rb"(?i)retry-after: *(\d+)", self._read)
                outcome.retry_after = found[1].decode() if found else ""
            if self._marker in self._read:
                outcome.first = time.monotonic() - self._begun
        if data.endswith(END) or outcome.status != 200:
            outcome.total = time.monotonic() - self._begun
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.outcome.total < 0 and not self.outcome.aborted:
            self.outcome.error = f"broken off: {exc}"
        elif self.outcome.status != 200:
            self.outcome.error = self._read[-300:].decode("latin-1")
        if not self.ended.done():
            self.ended.set_result(None)

    def _abort(self) -> None:
        if self.outcome.total < 0:
            self.outcome.aborted = True
            self._transport.abort()


async def ask(plan: dict[str, Any], place: int) -> Outcome:
    loop = asyncio.get_running_loop()
    body, headers = plan["bodies"][place], plan["headers"][place]
    await asyncio.sleep(plan["spread"] * place / len(plan["bodies"]))
    lines = [f"POST {plan['path']} HTTP/1.1", f"Host: 127.0.0.1:{plan['port']}"]
    data = json.dumps(body).encode()
    lines += [f"Content-Type: application/json\r\nContent-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join(lines).encode() + b"\r\n\r\n" + data
    number = int(NUMBER.findall(json.dumps(body))[-1])
    abort = plan["abort"] and place % plan["abort"] == plan["abort"] - 1
    asking = Asking(number, request, 3.0 if abort else 0.0)
    try:
        await loop.create_connection(lambda: asking, "127.0.0.1", plan["port"])
        async with asyncio.timeout(PATIENCE):
            await asking.ended
    except (OSError, TimeoutError) as error:
        asking.outcome.error = type(error).__name__
    return asking.outcome


async def main() -> None:
    plan = json.load(sys.stdin)
    outcomes = await asyncio.gather(*(ask(plan, place) for place in range(len(plan["bodies"]))))
    json.dump([asdict(outcome) for outcome in outcomes], sys.stdout)


if __name__ == "__main__":
    uvloop.run(main())
