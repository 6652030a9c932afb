"""Lets a child process end with its parent, even if the parent is killed."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def exit_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the process `parent` ends.

    Call this first in a child. The signal is SIGKILL, so that the site can be restarted at the same address
    at once.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the kernel was asked
        os._exit(1)
