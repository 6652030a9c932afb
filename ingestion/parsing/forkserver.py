"""Children that read files, forked from a process that has loaded what they need (`template`).

Uses no more of Django than its settings.
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any, NoReturn

from django.conf import settings

from . import child

INHERITED = ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX")
STATUS_BYTES = 20


class Child:
    """A child at work. `output` ends with it; `expired` says that its time was over."""

    def __init__(self, template: "_Template", arguments: Sequence[str], folder: str, seconds: float) -> None:
        self.output = template.fork(arguments, folder)
        self.expired = False
        self._template = template
        self._status: int | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.set_deadline(seconds)

    def set_deadline(self, seconds: float) -> None:
        """End it after that many seconds from now on."""
        if self._timer:
            self._timer.cancel()
        self.seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.start()

    def wait(self) -> int:
        """Until it has ended: its exit status, or its signal as a negative number. Raises OSError."""
        if self._status is None:
            status = self._template.wait()
            with self._lock:  # from here on its template may work for another
                self._status = status
        return self._status

    def close(self) -> None:
        """End it, where it has not ended. Raises OSError where its template is gone."""
        self.output.close()
        try:
            self._kill()
            self.wait()
        finally:
            if self._timer:
                self._timer.cancel()

    def end(self) -> None:
        """Kill it, from any thread, where it has not ended."""
        with contextlib.suppress(OSError):
            self._kill()

    def _kill(self) -> bool:
        with self._lock:
            running = self._status is None
            if running:
                self._template.kill()
            return running

    def _expire(self) -> None:
        with contextlib.suppress(OSError):
            self.expired = self._kill()


@contextlib.contextmanager
def forked(arguments: Sequence[str], folder: str, seconds: float) -> Iterator[Child]:
    """A child with the arguments of `child.main` and a folder to itself. It is gone when the block ends.

    Raises OSError where there can be none.
    """
    template = _free()
    try:
        child = Child(template, arguments, folder, seconds)
        try:
            yield child
        finally:
            child.close()
    except OSError:
        template.close()
        raise
    finally:
        if not template.closed:
            _idle.append(template)


class _Template:
    """A running `template`, with one child at a time."""

    def __init__(self) -> None:
        self.closed = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                [sys.executable, "-m", "ingestion.parsing.forkserver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd="/", env=_environment("/"), pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip

    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, arguments: Sequence[str], folder: str) -> IO[bytes]:
        """Start a child; what it answers."""
        ours, theirs = os.pipe()
        try:
            request = {"arguments": arguments, "environment": _environment(folder)}
            socket.send_fds(self._control, [json.dumps(request).encode()], [theirs])
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return os.fdopen(ours, "rb")

    def kill(self) -> None:
        self._control.send(b"end")

    def wait(self) -> int:
        status = self._control.recv(STATUS_BYTES)
        if not status:
            raise ChildProcessError("The process that reads files has ended.")
        return os.waitstatus_to_exitcode(int(status))

    def close(self) -> None:
        """With its child, if there is one."""
        self.closed = True
        self._control.close()
        self._process.wait()


_idle: list[_Template] = []


def _free() -> _Template:
    """A template without a child; as many come to be as there are files read at a time."""
    while _idle:
        template = _idle.pop()
        if template.alive():
            return template
        template.close()
    return _Template()


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()


def _environment(folder: str) -> dict[str, str]:
    """Nothing of ours: no key, no address of a database."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {
        "PYTHONPATH": str(settings.BASE_DIR),
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "OPENBLAS_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "TOKIO_WORKER_THREADS": "1",
    }


REQUEST_BYTES = 100_000


def main(control: socket.socket) -> None:
    """Serve requests one after the other until nobody holds the other end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 1)
        if not message:
            return
        if not descriptors:  # to end a child that has just ended by itself
            continue
        status = _run(control, json.loads(message), descriptors[0])
        with contextlib.suppress(OSError):  # then the next message is the end
            control.send(str(status).encode())


def _run(control: socket.socket, request: dict[str, Any], answer: int) -> int:
    with contextlib.suppress(ImportError):  # the child will say so
        child.load(request["arguments"])
    gc.freeze()  # else the child's first collection would copy the memory of all that is loaded
    number = os.fork()
    if number == 0:
        control.close()
        _be_child(request, answer)
    os.close(answer)
    _lead_group(number)
    ended = os.pidfd_open(number)
    try:
        ready, _, _ = select.select([control.fileno(), ended], [], [])
        if control.fileno() in ready:
            control.recv(REQUEST_BYTES)
            _kill_group(number)
            select.select([ended], [], [])
    finally:
        os.close(ended)
    _kill_group(number)  # what the child has left; until it is waited for, nobody else gets its number
    return os.waitpid(number, 0)[1]


def _be_child(request: dict[str, Any], answer: int) -> NoReturn:
    status = 1
    try:
        _lead_group(0)
        os.set_inheritable(answer, False)  # what the child starts must not hold the answer open
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["environment"]["HOME"])
        with os.fdopen(answer, "wb") as output:
            child.main(request["arguments"], output)
        status = 0
    finally:
        os._exit(status)  # nothing of the template's is to be tidied up here


def _lead_group(number: int) -> None:
    """Both sides say so: whichever comes first."""
    with contextlib.suppress(OSError):
        os.setpgid(number, number)


def _kill_group(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
