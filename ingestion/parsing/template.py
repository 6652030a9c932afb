"""The process from which the children that read files are forked: `python -m ingestion.parsing.template`.

Loading the libraries takes longer than reading most files. So they are loaded here, once, and each file gets
a child of its own with limits of its own. This process opens no file, and ends with the one that started it
(see `forking`).

A request on the control socket is a JSON object with `arguments` (of `child.main`) and `environment`, and it
brings the descriptor that the answer is to be written to. When the child has ended, its wait status goes
back. Any message meanwhile, and the end of the socket, end the child.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from . import child

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
