"""How requests reach a model's server: HTTP/1.1 on connections of our own (chat.llm.wire)."""

import asyncio
import re
import socket
import ssl

import httpx2

from .wire import Body, Wire

BODY = "chat.wire_body"  # the extension of a response that has its Body
KEPT_SECONDS = 4.0  # a connection without a request: many servers close theirs after five
FOREVER = 86_400.0  # seconds, for who sets no time-out
_BREAKS = re.compile(rb"[\r\n\x00]")

_Origin = tuple[str, str, int]


class WireTransport(httpx2.AsyncBaseTransport):
    """For the client library, which makes requests and reads errors as ever. Knows no proxies."""

    def __init__(self) -> None:
        self._idle: dict[_Origin, list[Wire]] = {}
        self._context: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The head has been read then; the body is read by whoever wants it. Raises HTTPError."""
        timeouts = request.extensions.get("timeout", {})
        url = request.url
        if url.scheme not in {"http", "https"} or not url.host:
            raise httpx2.UnsupportedProtocol("The address must begin with http:// or https://.")
        origin = (url.scheme, url.raw_host.decode(), url.port or (443 if url.scheme == "https" else 80))
        sent = _head(request) + b"".join([part async for part in request.stream])  # type: ignore[union-attr]
        wire = self._kept(origin) or await self._connect(origin, timeouts.get("connect") or FOREVER)
        seconds = timeouts.get("read") or FOREVER
        try:
            wire.ask(sent)
            status, headers = await wire.head(asyncio.get_running_loop().time() + seconds)
        except TimeoutError:
            wire.close()
            raise httpx2.ReadTimeout("The server says nothing.") from None
        except BaseException:
            wire.close()
            raise
        body = Body(wire, seconds, lambda wire: self._release(origin, wire))
        return httpx2.Response(status, headers=headers, stream=body, extensions={BODY: body})

    async def aclose(self) -> None:
        for wires in self._idle.values():
            for wire in wires:
                wire.close()
        self._idle.clear()

    def _kept(self, origin: _Origin) -> Wire | None:
        waiting = self._idle.get(origin, [])
        while waiting:
            wire = waiting.pop()
            if wire.reusable:
                return wire
            wire.close()
        return None

    def _release(self, origin: _Origin, wire: Wire) -> None:
        if not wire.reusable:
            wire.close()
            return
        self._idle.setdefault(origin, []).append(wire)
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self._drop, origin, wire)

    def _drop(self, origin: _Origin, wire: Wire) -> None:
        waiting = self._idle.get(origin, [])
        if wire in waiting:
            waiting.remove(wire)
            wire.close()

    async def _connect(self, origin: _Origin, seconds: float) -> Wire:
        """Of several addresses one may be dead: none takes the time of those after it."""
        _, host, port = origin
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        try:
            async with asyncio.timeout_at(end):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for left, (*_, address) in zip(range(len(found), 0, -1), found, strict=True):
                try:
                    async with asyncio.timeout((end - loop.time()) / left):
                        return await self._connected(origin, str(address[0]))
                except (OSError, TimeoutError):
                    if left == 1:
                        raise
        except TimeoutError:
            raise httpx2.ConnectTimeout("The server takes no connection.") from None
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(type(error).__name__) from error
        raise httpx2.ConnectError("The server has no address.")

    async def _connected(self, origin: _Origin, address: str) -> Wire:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        if scheme == "http":
            _, wire = await loop.create_connection(Wire, address, port)
            return wire
        if self._context is None:
            self._context = httpx2.create_ssl_context()
        _, wire = await loop.create_connection(Wire, address, port, ssl=self._context, server_hostname=host)
        return wire


def _head(request: httpx2.Request) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers.raw]
    if any(_BREAKS.search(line) for line in lines):
        raise httpx2.LocalProtocolError("A header cannot be sent.")
    return b"\r\n".join(lines) + b"\r\n\r\n"
