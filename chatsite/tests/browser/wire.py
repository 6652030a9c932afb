"""The network between a browser and a site. It can be cut, drop all data, and be repaired."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Wire:
    """Forwards connections to a site. Use it with `with`; pages go to its `url`."""

    def __init__(self, url):
        self._target = (urlsplit(url).hostname, urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._open = set()
        self._whole = True
        self._age = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self):
        """Close every connection, and refuse new ones."""
        self._whole = False
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self._whole = True

    def swallow(self):
        """Keep the connections open, but forward no more data."""
        self._age += 1

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._whole:
                    self._join(near)
                else:
                    near.close()

    def _join(self, near):
        try:
            far = socket.create_connection(self._target)
        except OSError:  # the site does not respond
            near.close()
            return
        threading.Thread(target=self._forward, args=(near, far, self._age), daemon=True).start()

    def _forward(self, near, far, age):
        """Forward both directions, then close both ends."""
        self._open |= {near, far}
        with near, far:
            back = threading.Thread(target=self._carry, args=(far, near, age), daemon=True)
            back.start()
            self._carry(near, far, age)
            back.join()
        self._open -= {near, far}

    def _carry(self, one, other, age):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if age == self._age:
                    other.sendall(data)
        if age == self._age:
            for each in (one, other):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
