"""Measures the seconds from an empty folder to an answer with its source, for each way to install the site.

    python benchmarks/install_paths.py [--only clone wheel uvx root] [--root FOLDER] [--uvx PROGRAM]

`clone`: `git clone` of this checkout and `make run`. `wheel`: `python -m venv`, `pip install` of the wheel,
`chatsite up`. `uvx`: `uvx --from WHEEL chatsite up`. `root`: like `wheel`, in a root file system made by
`debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm FOLDER` (needs root;
the file system is not changed). Each way starts in an empty folder with empty caches, so every package is
downloaded. Needs git, the package index, and for `uvx` the program uvx.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "deploy"))

from release_check import KEY, START_SECONDS, demand_citation, is_ready  # noqa: E402


@dataclass(frozen=True)
class Way:
    """An installation: commands before the start, the start, and the site's own command."""

    folder: Path  # path inside the root file system
    before: list[list[str]]
    start: list[str]
    command: list[str]
    inside: Path | None = None  # the root file system


def built(target: Path) -> Path:
    """The wheel of this checkout."""
    python = ROOT / ".venv-dev/bin/python"
    subprocess.run(
        [python, "-m", "hatchling", "build", "-t", "wheel", "-d", target],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(target.glob("*.whl"))


def cloned(folder: Path, options: argparse.Namespace) -> Way:
    site = folder / "chatsite"
    command = [str(site / ".venv/bin/python"), "manage.py"]
    return Way(site, [["git", "clone", "-q", str(ROOT), str(site)]], ["make", "-s", "run"], command)


def from_wheel(folder: Path, options: argparse.Namespace) -> Way:
    wheel = built(folder / "dist")
    before = [["python3", "-m", "venv", "venv"], ["venv/bin/pip", "install", "-qq", str(wheel)]]
    return Way(folder, before, ["venv/bin/chatsite", "up"], ["venv/bin/chatsite"])


def by_uvx(folder: Path, options: argparse.Namespace) -> Way:
    command = [options.uvx, "--quiet", "--from", str(built(folder / "dist")), "chatsite"]
    return Way(folder, [], [*command, "up"], command)


def in_root(folder: Path, options: argparse.Namespace) -> Way:
    inside = folder / "root"
    subprocess.run(["cp", "-a", options.root, inside], check=True)
    wheel = built(inside / "dist").relative_to(inside)
    venv = "/srv/venv/bin"
    before = [["python3", "-m", "venv", "/srv/venv"], [f"{venv}/pip", "install", "-qq", f"/{wheel}"]]
    return Way(Path("/srv"), before, [f"{venv}/chatsite", "up"], [f"{venv}/chatsite"], inside)


WAYS: dict[str, Callable[[Path, argparse.Namespace], Way]] = {
    "clone": cloned,
    "wheel": from_wheel,
    "uvx": by_uvx,
    "root": in_root,
}


@contextmanager
def mounted(way: Way) -> Iterator[None]:
    places = [way.inside / name for name in ("proc", "dev")] if way.inside else []
    try:
        for place in places:
            subprocess.run(["mount", "--bind", f"/{place.name}", place], check=True)
        yield
    finally:
        for place in places:
            subprocess.run(["umount", "-l", place], check=True)


def seconds_of(way: Way, folder: Path) -> list[tuple[str, float]]:
    """The states that were reached, each with the seconds since the first command."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    caches = "/tmp/caches" if way.inside else str(folder / "caches")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CHATSITE_", "PYTHON"))
    }
    environment |= {"PORT": str(port), "XDG_CACHE_HOME": caches, "UV_CACHE_DIR": f"{caches}/uv"}

    def started(command: list[str], output: int | None = None) -> subprocess.Popen[str]:
        at: Path | None = way.folder if way.folder.exists() else folder
        if way.inside:
            at = None
            command = ["chroot", str(way.inside), "sh", "-c", f'cd {way.folder} && exec "$@"', "-", *command]
        return subprocess.Popen(
            command, cwd=at, env=environment, text=True, stdout=output, start_new_session=True
        )

    begun = time.monotonic()
    for command in way.before:
        if started(command).wait():
            raise SystemExit(f"{' '.join(command)} failed.")
    reached = [("installed", time.monotonic() - begun)] if way.before else []
    site = started(way.start, subprocess.DEVNULL)
    try:
        while not is_ready(port):
            if site.poll() is not None or time.monotonic() > begun + 5 * START_SECONDS:
                raise SystemExit("The site does not start.")
            time.sleep(0.1)
        reached.append(("ready", time.monotonic() - begun))
        key = started(
            [*way.command, "create_api_key", "employee", "--name", "install"], stdout=subprocess.PIPE
        )
        demand_citation(port, KEY.findall(key.communicate()[0])[-1])
        reached.append(("answer with its source", time.monotonic() - begun))
    finally:
        os.killpg(site.pid, signal.SIGTERM)
        site.wait()
    return reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=["clone", "wheel", "uvx"])
    parser.add_argument("--root", type=Path, help="the root file system that debootstrap made")
    parser.add_argument("--uvx", default="uvx")
    options = parser.parse_args()
    for name in options.only:
        folder = Path(tempfile.mkdtemp(prefix="chatsite-install-"))
        folder.chmod(0o755)  # started by root, PostgreSQL runs as another user
        try:
            way = WAYS[name](folder, options)
            with mounted(way):
                reached = seconds_of(way, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        load = os.getloadavg()[0]
        print(f"{name}:", ", ".join(f"{what} {after:.1f} s" for what, after in reached), f"(load {load:.1f})")


if __name__ == "__main__":
    main()
