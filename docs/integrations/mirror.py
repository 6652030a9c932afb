"""Mirror a folder to a site: upload all its files, delete documents whose files are gone.

The environment has SITE, the site's address, and KEY, an API key with the scopes documents:read and
documents:write.

python mirror.py FOLDER [--everyone] [--group NAME]...
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

TRIES = 5


def send(method: str, address: str, body: bytes | None = None) -> Any:
    """Send a request, and return the response with its JSON as `.data`.

    While the site is busy, waits for Retry-After and tries again, at most TRIES times in all. Raises
    urllib.error.HTTPError for a refusal.
    """
    headers = {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(os.environ["SITE"] + address, body, headers, method=method)
    tries = 0
    while True:
        tries += 1
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                text = response.read()
                response.data = json.loads(text) if text else None
                return response
        except urllib.error.HTTPError as refusal:
            if refusal.code not in {429, 503} or tries == TRIES:
                raise
            seconds = refusal.headers.get("Retry-After", "")
            time.sleep(int(seconds) if seconds.isdecimal() else 2)  # a proxy may send a date


def reason(refusal: urllib.error.HTTPError) -> str:
    """The messages for the invalid members of a refused request, otherwise the problem's detail."""
    try:
        problem = json.loads(refusal.read())
        members = [f"{error['pointer']}: {error['detail']}" for error in problem.get("errors", [])]
        return " ".join(members) or str(problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return str(refusal)  # the response is not from the site, but from a proxy, for example


def mark(folder: Path) -> str:
    """The prefix of this folder's external ids, different even for folders with the same name."""
    name = re.sub("[^A-Za-z0-9.-]", "-", folder.name)[-40:]
    return f"mirror:{name}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}:"


def external_id(folder: Path, path: Path) -> str:
    """A stable external id for a path, with the prefix of its folder."""
    name = path.relative_to(folder).as_posix()
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{mark(folder)}{re.sub('[^A-Za-z0-9.-]', '-', name)[-100:]}:{digest}"


def mirrored(folder: Path) -> set[str]:
    """The external ids of this folder's documents on the site."""
    found, address = set(), "/api/documents?own=true&limit=200"
    while address:
        response = send("GET", address)
        names = (document["external_id"] for document in response.data)
        found |= {name for name in names if name.startswith(mark(folder))}
        link = re.match("<(.+)>", response.headers.get("Link") or "")
        address = link[1] if link else ""
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--everyone", action="store_true")
    parser.add_argument("--group", action="append", default=[])
    wanted = parser.parse_args()
    folder = wanted.folder.resolve()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:  # a mistyped or unmounted folder must not delete everything
        sys.exit(f"{folder} has no files. Nothing was changed.")
    kept, refused = set(), 0
    for path in files:
        name = external_id(folder, path)
        kept.add(name)  # even if the upload is refused: the site then keeps the former version
        about = {"name": path.name, "folder": path.parent.relative_to(folder.parent).as_posix()}
        about |= {"everyone": str(wanted.everyone).lower(), "groups": wanted.group}
        query = urllib.parse.urlencode(about, doseq=True)
        try:
            data = send("PUT", f"/api/documents/{name}?{query}", path.read_bytes()).data
            print(f"{data['outcome']:9}  {path.relative_to(folder)}")
        except urllib.error.HTTPError as refusal:
            if refusal.code in {401, 403}:  # all other files would be refused, too
                raise
            refused += 1
            print(f"refused    {path.relative_to(folder)}: {reason(refusal)}")
    for name in sorted(mirrored(folder) - kept):
        send("DELETE", f"/api/documents/{name}")
        print(f"deleted    {name}")
    if refused:
        sys.exit(f"{refused} of {len(files)} files were refused.")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as refusal:
        sys.exit(reason(refusal))
