"""A child process that does not outlive its parent, even when the parent is killed."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def exit_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the process `parent` ends. Called first of all in a child.

    The signal is SIGKILL, so that the address is free at once for the next start.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the request was made
        os._exit(1)
