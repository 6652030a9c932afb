"""The time of a message to `/mcp` over one persistent connection, in both revisions.

    .venv-dev/bin/python benchmarks/bench_mcp.py [MESSAGES]      500 of each kind by default

Starts a site with the demo's documents and one web process. Times are milliseconds from the client's call
until the body is read; the key is checked for every message. The target is 10 ms for `tools/list`.
"""

import http.client
import json
import shutil
import sys
import time
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.clients.run import api_key, wait_for_handbook
from chat.protocols import mcp
from chatsite.tests.server import Site, temporary_folder

MESSAGES = 500
TARGET = 10.0  # milliseconds for `tools/list`
CALLS = {
    "tools/list": ("tools/list", {}),
    "resources/list, 11 documents": ("resources/list", {}),
    "list_sources": ("tools/call", {"name": "list_sources", "arguments": {}}),
    "search": ("tools/call", {"name": "search", "arguments": {"query": "carry over leave"}}),
}
ENVELOPE = {mcp.VERSION_KEY: mcp.CURRENT, mcp.CAPABILITIES_KEY: {}}


def main() -> None:
    messages = int(sys.argv[1]) if sys.argv[1:] else MESSAGES
    folder = temporary_folder()
    try:
        with Site(folder, CHATSITE_LOOP_WATCHDOG_SECONDS="0") as site:
            key = api_key(site)
            wait_for_handbook(site)
            measure(http.client.HTTPConnection(urlsplit(site.url).netloc), key, messages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(connection: http.client.HTTPConnection, key: str, messages: int) -> None:
    print(f"{'milliseconds':40}{'p50':>8}{'p95':>8}")
    for version in (mcp.HANDSHAKE[0], mcp.CURRENT):
        for name, (method, params) in CALLS.items():
            body, headers = message(version, method, params)
            headers["Authorization"] = f"Bearer {key}"
            for _ in range(20):
                asked(connection, body, headers)
            cuts = quantiles((asked(connection, body, headers) for _ in range(messages)), n=20)
            verdict = ""
            if method == "tools/list":
                verdict = "  within 10 ms" if cuts[18] <= TARGET else "  OVER 10 ms"
            print(f"{version} {name:29}{cuts[9]:8.1f}{cuts[18]:8.1f}{verdict}", flush=True)


def message(version: str, method: str, params: dict) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers["MCP-Protocol-Version"] = version
    if version == mcp.CURRENT:
        params = params | {"_meta": ENVELOPE}
        headers |= {"Mcp-Method": method, "Mcp-Name": params.get("name", "")}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(body).encode(), headers


def asked(connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str]) -> float:
    """The milliseconds of one message."""
    started = time.perf_counter()
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    read = response.read()
    taken = (time.perf_counter() - started) * 1000
    assert response.status == 200, read
    assert b'"result"' in read, read
    return taken


if __name__ == "__main__":
    main()
