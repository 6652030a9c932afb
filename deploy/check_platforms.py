"""`make platforms`: check that every locked package has a wheel for each supported platform."""

import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
GLIBC = ("2_28", "2_27", "2_26", "2_24", "2_17", "2_5")  # pip needs each tag as a separate option
PLATFORMS = {
    "Linux x86-64": [*(f"manylinux_{version}_x86_64" for version in GLIBC), "manylinux2014_x86_64"],
    "Linux ARM64": [*(f"manylinux_{version}_aarch64" for version in GLIBC), "manylinux2014_aarch64"],
}


def missing(tags: list[str], python: str) -> str:
    """Return pip's message about the first package without a wheel; empty if each has one."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--target",
            folder,
        ]
        command += ["--only-binary=:all:", "--no-deps", "--require-hashes", "--python-version", python]
        command += [word for tag in tags for word in ("--platform", tag)]
        done = subprocess.run([*command, "-r", str(LOCK)], capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: No matching")]
    return errors[0] if errors else done.stderr.strip()


def main() -> int:
    failed = False
    for platform, tags in PLATFORMS.items():
        for python in PYTHONS:
            absent = missing(tags, python)
            failed = failed or bool(absent)
            print(f"{platform}, Python {python}: {absent or 'complete'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
