"""Other work on the machine slows a test; limits of time are written for an idle machine, and multiplied."""

import os


def patience():
    """How many times as long as on an idle machine something may take."""
    return max(1, os.getloadavg()[0])
