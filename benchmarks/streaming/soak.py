"""Mixed use for a while, with one in ten broken off: whether memory, files and sessions stay as they are."""

import time
from collections.abc import Iterator

from .processes import load, megabytes, open_files
from .world import World

AT_ONCE = 40
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'chatsite'"


def soaked(world: World, minutes: float) -> Iterator[str]:
    """A line for each round, and one that compares the second with the last: the first warms up."""
    end = time.monotonic() + minutes * 60
    seen: list[tuple[float, float, int, int]] = []
    begun = time.monotonic()
    while time.monotonic() < end or len(seen) < 3:
        outcomes = load(**world.questions(AT_ONCE), spread=2.0, abort=10)
        failed = sum(bool(outcome.error) for outcome in outcomes)
        aborted = sum(outcome.aborted for outcome in outcomes)
        world.read_pages()
        row = (
            time.monotonic() - begun,
            megabytes([world.web]),
            open_files(world.web),
            world.rows(SESSIONS)[0][0],
        )
        seen.append(row)
        told = f"{row[0]:6.0f} s: {row[1]:.1f} MB, {row[2]} files, {row[3]} sessions"
        yield f"{told}; {aborted} aborted, {failed} failed"
    first, last = seen[1], seen[-1]
    slope = (last[1] - first[1]) / max(1.0, last[0] - first[0]) * 60
    yield f"memory {first[1]:.1f} → {last[1]:.1f} MB ({slope:+.2f} a minute), files {first[2]} → {last[2]}"
