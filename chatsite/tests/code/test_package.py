"""The wheel has every file of the product, and works without its checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from chatsite.tests.server import BASE

PACKAGES = ("chat", "chatsite", "history", "ingestion")
BESIDE = ("locale", "static", "templates")  # in a checkout and in the image; below `chatsite` in the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=BASE, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def product_files():
    """Paths as they are in the wheel."""
    for package in PACKAGES:
        for file in (BASE / package).rglob("*"):
            path = file.relative_to(BASE)
            if file.is_file() and not {"tests", "__pycache__"} & set(path.parts):
                yield str(path)
    for folder in BESIDE:
        for file in (BASE / folder).rglob("*"):
            if file.is_file():
                yield str(Path("chatsite") / file.relative_to(BASE))


@pytest.mark.slow
def test_the_wheel_holds_the_product_and_no_tests(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == set(product_files())


@pytest.mark.slow
def test_commands_of_the_wheel_work_in_an_empty_folder_and_keep_their_data_there(wheel, tmp_path):
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(installed)
    empty.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CHATSITE_", "DJANGO_"))
    }
    code = "from chatsite.command_line import main; main()"
    for arguments in (["check"], ["findstatic", "portal.css"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=empty,
            env=environment | {"PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert str(installed / "chatsite" / "static") in done.stdout
    assert [file.name for file in empty.iterdir()] == ["chatsite-data"]


def test_the_image_has_every_folder_of_the_product():
    copied = {
        source
        for line in (BASE / "deploy" / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and not line.startswith("COPY --from")
        for source in line.split()[1:-1]
    }
    assert {*PACKAGES, *BESIDE} <= copied
    sent = {line[1:] for line in (BASE / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sent == copied, "What .dockerignore leaves out cannot be copied."
