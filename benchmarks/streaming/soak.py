"""Mixed use for some minutes, with one in ten answers aborted: memory, files and sessions over time."""

import time
from collections.abc import Iterator
from statistics import linear_regression
from typing import NamedTuple

from .processes import load, megabytes, open_files, own_kilobytes
from .world import World

AT_ONCE = 40
DIFFERENT = 400  # questions before they repeat, so that the cached word vectors (at most 40 MB) stop growing
MIN_ROUNDS = 4
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'chatsite'"


class Look(NamedTuple):
    """Figures of the web process between two rounds of questions.

    Memory is in MB: private memory, and memory with the process's part of shared memory, which rises when
    another site on the machine ends.
    """

    minutes: float
    own: float
    shared: float
    files: int
    sessions: int

    def __str__(self) -> str:
        return (
            f"{self.minutes:5.1f} min: {self.own:.1f} MB of its own, {self.shared:.1f} MB with its share,"
            f" {self.files} files, {self.sessions} sessions"
        )


def soaked(world: World, minutes: float) -> Iterator[str]:
    """A line for each round, and the trend in the second half; the first half warms up the site."""
    begun = time.monotonic()
    looks: list[Look] = []
    while time.monotonic() < begun + minutes * 60 or len(looks) < MIN_ROUNDS:
        outcomes = load(**world.questions(AT_ONCE, DIFFERENT), spread=2.0, abort=10)
        failed = sum(bool(outcome.error) for outcome in outcomes)
        aborted = sum(outcome.aborted for outcome in outcomes)
        world.read_pages()
        looks.append(_look(world, (time.monotonic() - begun) / 60))
        yield f"{looks[-1]}; {aborted} aborted, {failed} failed"
    half = looks[len(looks) // 2 :]
    slope = linear_regression([look.minutes for look in half], [look.own for look in half]).slope
    yield f"first:  {looks[0]}\nmiddle: {half[0]}\nlast:   {half[-1]}"
    yield f"memory of its own in the second half: {slope:+.2f} MB a minute"


def _look(world: World, minutes: float) -> Look:
    return Look(
        minutes,
        own_kilobytes(world.web) / 1000,
        megabytes([world.web]),
        open_files(world.web),
        world.rows(SESSIONS)[0][0],
    )
