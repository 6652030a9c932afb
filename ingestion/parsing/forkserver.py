"""A fork server for the child processes that read files.

A template process imports the libraries of the readers once, and forks a child for each file or page. Of
Django, this module uses only the settings.
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
    """A running child. `output` ends with the child; `expired` is true if it exceeded its time limit."""

    def __init__(self, template: "_Template", arguments: Sequence[str], folder: str, seconds: float) -> None:
        self.output = template.fork(arguments, folder)
        self.expired = False
        self._template = template
        self._status: int | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.set_deadline(seconds)

    def set_deadline(self, seconds: float) -> None:
        """Kill the child this many seconds from now."""
        if self._timer:
            self._timer.cancel()
        self.seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.start()

    def wait(self) -> int:
        """Wait for the child's end; returns its exit status, or minus the signal. Raises OSError."""
        if self._status is None:
            status = self._template.wait()
            with self._lock:  # `_kill` does nothing from now on: the template may fork another child
                self._status = status
        return self._status

    def close(self) -> None:
        """End the child if it is running. Raises OSError if its template has died."""
        self.output.close()
        try:
            self._kill()
            self.wait()
        finally:
            if self._timer:
                self._timer.cancel()

    def end(self) -> None:
        """Kill the child if it is running; callable from any thread."""
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
    """Fork a child that runs `child.main` with these arguments in `folder`.

    A child that still runs at the end of the block is killed. Raises OSError if no child can be started, or
    if its template dies.
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
    """A running template process, which has one child at a time."""

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
        """Start a child; returns the file of its output."""
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
        """End the template and its child, if any."""
        self.closed = True
        self._control.close()
        self._process.wait()


_idle: list[_Template] = []


def _free() -> _Template:
    """An idle or a new template. A template has only one child at a time."""
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
    """An environment without secrets: no key, no database URL."""
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
    """Serve requests one after the other until the parent closes its end of the socket."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 1)
        if not message:
            return
        if not descriptors:  # a request to end the child, which has already ended
            continue
        status = _run(control, json.loads(message), descriptors[0])
        with contextlib.suppress(OSError):  # if the parent has closed its end, the next message is empty
            control.send(str(status).encode())


def _run(control: socket.socket, request: dict[str, Any], answer: int) -> int:
    with contextlib.suppress(ImportError):  # the child will report the error
        child.load(request["arguments"])
    gc.freeze()  # otherwise the child's first garbage collection would copy all memory pages
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
    # Kill processes that the child has left running. Its process id is not reused before waitpid.
    _kill_group(number)
    return os.waitpid(number, 0)[1]


def _be_child(request: dict[str, Any], answer: int) -> NoReturn:
    status = 1
    try:
        _lead_group(0)
        os.set_inheritable(answer, False)  # processes started by the child must not keep the output open
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["environment"]["HOME"])
        with os.fdopen(answer, "wb") as output:
            child.main(request["arguments"], output)
        status = 0
    finally:
        os._exit(status)  # without the template's exit handlers


def _lead_group(number: int) -> None:
    """Make the process the leader of its own group.

    Parent and child both call this, because either may be first.
    """
    with contextlib.suppress(OSError):
        os.setpgid(number, number)


def _kill_group(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
