"""Open WebUI, set up by an administrator in the best way for this comparison.

The sample documents that everyone may read are in a knowledge base, which a model of the workspace searches
for each question; this model is everyone's default. The person who performs the tasks is an ordinary user, in
the group HR, who may create knowledge bases and give groups access to them.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

from benchmarks.clients.open_webui import QUIET, SECONDS, Client, free_port

SAMPLES = Path(__file__).resolve().parents[2] / "ingestion" / "samples" / "everyone"
MODEL = "documents"
EMAIL, PASSWORD = "eve@example.org", "a-long-Passphrase-3"
EVERYONE = {"principal_type": "user", "principal_id": "*", "permission": "read"}


@contextlib.contextmanager
def open_webui(programs, model):
    """A client at a new site, signed in as the person who performs the tasks."""
    port, data = free_port(), Path(tempfile.mkdtemp())
    environment = os.environ | QUIET | {
        "DATA_DIR": str(data),
        "WEBUI_SECRET_KEY": "benchmark",
        "OPENAI_API_BASE_URL": model,
        "OPENAI_API_KEY": "benchmark",
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_PERSISTENT_CONFIG": "false",
        "RAG_OPENAI_API_BASE_URL": model,
        "RAG_OPENAI_API_KEY": "benchmark",
        "DEFAULT_MODELS": MODEL,
        "USER_PERMISSIONS_WORKSPACE_KNOWLEDGE_ACCESS": "true",
        "USER_PERMISSIONS_WORKSPACE_KNOWLEDGE_ALLOW_SHARING": "true",
    }  # fmt: skip
    command = [programs / "open-webui", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (data / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=data, env=environment, stdout=log, stderr=log)
        try:
            administrator = Client(f"http://127.0.0.1:{port}")
            wait_for(administrator, process)
            administrator.sign_up()
            yield set_up(administrator, data)
        finally:
            process.terminate()
            process.wait(timeout=30)
            shutil.rmtree(data, ignore_errors=True)


def wait_for(client, process):
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "Open WebUI ended."
        with contextlib.suppress(OSError):
            client.call("/health")
            return
        time.sleep(0.5)
    raise AssertionError("Open WebUI did not start.")


def set_up(administrator, data):
    """Create the accounts, a group, a knowledge base and its model; return the ordinary user's client."""

    def call(path, **body):
        return json.loads(administrator.call(path, body))

    group = call("/api/v1/groups/create", name="HR", description="Human resources")
    for name, email in (("Bob", "bob@example.org"), ("Eve", EMAIL)):
        person = call("/api/v1/auths/add", name=name, email=email, password=PASSWORD, role="user")
        call(f"/api/v1/groups/id/{group['id']}/users/add", user_ids=[person["id"]])
    base = call("/api/v1/knowledge/create", name="Documents", description="All", access_grants=[EVERYONE])
    for file in sorted(SAMPLES.iterdir()):
        found = upload(administrator, file)
        call(f"/api/v1/knowledge/{base['id']}/file/add", file_id=found["id"])
    base["type"] = "collection"
    call(
        "/api/v1/models/create",  # users of a workspace's model also need the right to its base model
        id="scripted",
        name="Scripted",
        meta={"hidden": True},
        params={},
        access_grants=[EVERYONE],
    )
    call(
        "/api/v1/models/create",
        id=MODEL,
        base_model_id="scripted",
        name="Documents",
        meta={
            "knowledge": [base],
            "capabilities": {"citations": True, "file_upload": True, "file_context": True},
        },
        params={"function_calling": "legacy"},  # makes Open WebUI search before each answer
        access_grants=[EVERYONE],
    )
    client = Client(administrator.url)
    client.token = json.loads(client.call("/api/v1/auths/signin", {"email": EMAIL, "password": PASSWORD}))[
        "token"
    ]
    client.data = data
    return client


def upload(client, file):
    """Upload a file, and wait until it has been read."""
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n\r\n'
    body = head.encode() + file.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Authorization": f"Bearer {client.token}",
    }
    request = urllib.request.Request(f"{client.url}/api/v1/files/?process_in_background=false", body, headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        return json.load(response)
