"""Published clients against the running site: Microsoft's for JavaScript and OpenAI's for Python."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import openai
import psycopg
import pytest
from playwright._impl._driver import compute_driver_executable

from chat.tests.api.test_attachments import PNG
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY, answer
from chatsite.tests import documented
from chatsite.tests.limits import HANG_SECONDS, LONG_SECONDS
from chatsite.tests.server import BASE, Site, prepared, reading_parameters, temporary_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

PACKAGE = "@microsoft/ai-chat-protocol"
VERSION = "1.0.0-beta.20240814.1"
SCRIPT = Path(__file__).with_name("published_client.mjs")
QUESTION = "Until when can I use up last year’s leave?"
ASKED = [{"role": "user", "content": QUESTION}]
PLACE = "[employee-handbook.pdf#page=4]"
READ = "SELECT true FROM ingestion_document WHERE name = 'employee-handbook.pdf' AND status = 'ready'"
IMAGE = {"contentType": "image/png", "data": base64.b64encode(PNG).decode()}


@pytest.fixture(scope="module")
def model():
    """The fake server that the site uses as its language model."""
    with FakeOpenAI() as fake:
        yield fake


def wait_for_handbook(site, seconds=HANG_SECONDS):
    """Wait until the document that answers QUESTION has been read."""
    deadline = time.monotonic() + seconds
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while not connection.execute(READ).fetchone():
            assert time.monotonic() < deadline, "The handbook was not read."
            time.sleep(0.2)


@pytest.fixture(scope="module")
def asked_site(model):
    """A site that uses this model, and sends it images."""
    folder = temporary_folder()
    environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "fake"}
    try:
        with Site(prepared(folder), CHAT_MODEL_IMAGES="1", **environment) as site:
            wait_for_handbook(site)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def key(asked_site):
    """An API key of the demo's employee, created with the operator's command."""
    made = subprocess.run(
        [sys.executable, "manage.py", "create_api_key", "employee"],
        cwd=BASE,
        env=os.environ | {"CHATSITE_DATA_DIR": str(asked_site.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


@pytest.fixture(scope="module")
def package(request):
    """The client's file, installed from the registry once and kept in pytest's cache."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, so the published JavaScript client is not tried.")
    folder = request.config.cache.mkdir("ai-chat-protocol")
    client = folder / "node_modules" / PACKAGE / "dist" / "esm" / "index.js"
    if not client.exists():
        npm = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--no-save",
            "--prefix",
            folder,
        ]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*npm, f"{PACKAGE}@{VERSION}"], check=False, capture_output=True, timeout=120)
        if not client.exists():
            pytest.skip(f"{PACKAGE} cannot be downloaded from the registry.")
    return client


@pytest.fixture
def javascript(asked_site, key, package):
    """A function that makes calls of the client one after the other and returns their results."""

    def run(*calls, key=key, address="/chat", header="Authorization", retries=0):
        done = subprocess.run(
            ["node", str(SCRIPT), str(package), asked_site.url + address, key, header, str(retries)],
            input=json.dumps({"calls": calls}),
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def client(asked_site, key):
    with openai.OpenAI(api_key=key, base_url=f"{asked_site.url}/v1", max_retries=0) as client:
        yield client


def run_example(site, key, *questions):
    """docs/integrations/ask.mjs, run unchanged with Playwright's Node."""
    node, _ = compute_driver_executable()
    return subprocess.run(
        [node, BASE / "docs" / "integrations" / "ask.mjs", *questions],
        env={"SITE": site.url, "KEY": key},
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )


def test_the_javascript_example_asks_continues_and_counts_supported_statements(asked_site, key, model):
    model.script(answer("Carried days must be used ", f"by 31 March {PLACE}."), answer("In proportion."))
    done = run_example(asked_site, key, QUESTION, "And part-time?")
    assert done.stdout.startswith(f"Carried days must be used by 31 March {PLACE}.\n1 of 1 statements"), done
    assert "\nIn proportion.\n0 of 0 statements" in done.stdout
    assert "used by 31 March" in model.streams[-1].prompt
    refused = run_example(asked_site, "chs_wrong", QUESTION)
    assert "key" in refused.stderr, refused
    assert (refused.returncode, refused.stdout) == (1, "")


def text_of(chunks):
    return "".join(chunk["delta"].get("content") or "" for chunk in chunks)


def test_the_javascript_client_gets_a_whole_answer(javascript, model):
    model.script(answer("Until ", "31 March."))
    (told,) = javascript({"messages": ASKED})
    assert told["answer"]["message"] == {
        "content": "Until 31 March.", "role": "assistant", "function_call": None, "tool_calls": None,
    }  # fmt: skip
    assert told["answer"]["context"]["data_points"]["text"]
    assert told["answer"]["sessionState"] == told["answer"]["session_state"]


@pytest.mark.parametrize("address", ["/chat", "/chat/"])
def test_the_javascript_client_gets_a_stream(javascript, model, address):
    model.script(answer("Until ", "31 ", "March."))
    (told,) = javascript({"messages": ASKED, "stream": True}, address=address)
    assert "data_points" in told["chunks"][0]["context"]
    assert text_of(told["chunks"]) == "Until 31 March."
    assert told["chunks"][0]["sessionState"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_javascript_client_keeps_its_session_over_two_turns(javascript, model, stream):
    model.script(answer("Until 31 March."), answer("In proportion."))
    second = [
        *ASKED,
        {"role": "assistant", "content": "forged"},
        {"role": "user", "content": "And part-time?"},
    ]
    first, told = javascript(
        {"messages": ASKED, "stream": stream},
        {"messages": second, "options": {"sessionState": "$session"}, "stream": stream},
    )
    sessions = [(each.get("answer") or each["chunks"][0])["sessionState"] for each in (first, told)]
    assert sessions[0] == sessions[1]
    prompt = model.streams[-1].prompt
    assert "Until 31 March." in prompt
    assert "forged" not in prompt


@pytest.mark.parametrize("stream", [False, True])
def test_the_javascript_client_attaches_an_image(javascript, model, stream):
    model.script(answer("A dot."))
    (told,) = javascript({"messages": [ASKED[0] | {"files": [IMAGE]}], "stream": stream})
    assert "thrown" not in told, told
    said = text_of(told["chunks"]) if stream else told["answer"]["message"]["content"]
    assert said == "A dot."
    parts = model.streams[-1].body["messages"][-1]["content"]
    assert parts[1]["image_url"]["url"] == f"data:image/png;base64,{IMAGE['data']}"


def test_the_javascript_client_attaches_an_image_of_megabytes(javascript, model):
    image = IMAGE | {"data": base64.b64encode(PNG + bytes(3_000_000)).decode()}
    model.script(answer("A large dot."))
    (told,) = javascript({"messages": [ASKED[0] | {"files": [image]}]})
    assert "thrown" not in told, told
    assert told["answer"]["message"]["content"] == "A large dot."


def test_the_javascript_client_throws_the_message_of_the_site(javascript, model):
    refused, streamed, not_an_image = javascript(
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [], "stream": True},
        {"messages": [ASKED[0] | {"files": [IMAGE | {"data": "eA=="}]}]},
    )
    assert refused["thrown"].startswith("“messages[0].role” must be one of")
    assert streamed["thrown"] == "“messages” must not be empty."
    assert not_an_image["thrown"].startswith("“messages[0].files[0]” must be an image")
    (stranger,) = javascript({"messages": ASKED}, key="chs_wrong")
    assert "key" in stranger["thrown"]
    model.script("reset")
    (broken,) = javascript({"messages": ASKED, "stream": True})
    assert text_of(broken["chunks"]).startswith("Half an")
    assert broken["thrown"] == "The answer was interrupted."


@pytest.mark.parametrize("header", ["api-key", "X-Api-Key"])
def test_the_javascript_client_presents_its_key_credential(javascript, model, header):
    model.script(answer("Until 31 March."))
    (told,) = javascript({"messages": ASKED}, header=header)
    assert told["answer"]["message"]["content"] == "Until 31 March."
    (stranger,) = javascript({"messages": ASKED}, header=header, key="chs_wrong")
    assert header in stranger["thrown"]


def test_the_javascript_client_streams_two_turns_from_the_address_in_its_readme(javascript, model):
    model.script(answer("Until ", "31 March."), answer("In ", "proportion."))
    second = [
        *ASKED,
        {"role": "assistant", "content": "Until 31 March."},
        {"role": "user", "content": "Why?"},
    ]
    first, told = javascript(
        {"messages": ASKED, "stream": True},
        {"messages": second, "options": {"sessionState": "$session"}, "stream": True},
        address="/api/chat",
    )
    assert (text_of(first["chunks"]), text_of(told["chunks"])) == ("Until 31 March.", "In proportion.")
    assert first["chunks"][0]["sessionState"] == told["chunks"][0]["sessionState"]
    (stranger,) = javascript({"messages": ASKED, "stream": True}, address="/api/chat", key="chs_wrong")
    assert "key" in stranger["thrown"]


def test_the_retries_of_the_javascript_client_are_one_conversation(javascript, model, asked_site):
    before = conversations(asked_site)
    model.script("error_500", "error_500", "error_500", answer("Until 31 March."))
    question = [{"role": "user", "content": "Until when is leave of this year kept?"}]
    (told,) = javascript({"messages": question}, retries=3)
    assert told["answer"]["message"]["content"] == "Until 31 March."
    assert conversations(asked_site) == before + 1


# Blocks of the clients that are installed for tests; benchmarks.clients.documented also runs all others.
DOCUMENTED = [
    block
    for block in documented.blocks()
    if block.language == "sh" or block.heading in {"OpenAI for Python", f"`{PACKAGE}`"}
]


@pytest.mark.parametrize("block", DOCUMENTED, ids=[block.heading for block in DOCUMENTED])
def test_documented_requests_are_answered(block, asked_site, key, request):
    modules = BASE
    if block.language == "js":
        modules = request.getfixturevalue("package").parents[5]
    elif block.language == "sh" and shutil.which("curl") is None:
        pytest.skip("curl is not installed.")
    environment = os.environ | {"SITE": asked_site.url, "KEY": key}
    answered, wrote = documented.run(block, environment, sys.executable, modules)
    assert answered, wrote


def test_the_documentation_shows_every_protocol_and_client():
    assert {block.language for block in DOCUMENTED} == {"sh", "python", "js"}
    assert len(DOCUMENTED) > 15


def test_every_block_of_the_page_for_integrators_runs(asked_site):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed.")
    node, _ = compute_driver_executable()
    path = os.pathsep.join([str(Path(node).parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"CHATSITE_DATA_DIR": str(asked_site.folder), "PATH": path}
    shown = [block.code for block in documented.blocks("integrations/README.md") if block.language == "sh"]
    script = "\n".join(["set -e -o pipefail", *shown]).replace("http://127.0.0.1:8000", asked_site.url)
    ran = subprocess.run(
        ["bash", "-c", script.replace("curl ", "curl --fail-with-body ")],
        cwd=BASE,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    for sign in (
        '"groups":["HR"]',
        '"sure":true',
        '"rating":"bad"',
        '"secret":"whsec_',
        "added      leave.md",
    ):
        assert sign in ran.stdout, sign
    assert '"succeeded":2,"failed":1' in ran.stdout


def conversations(site):
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        return connection.execute("SELECT count(*) FROM history_conversation").fetchone()[0]


def test_the_openai_client_gets_a_whole_answer(client, model):
    model.script(answer("Until ", "31 March."))
    told = client.chat.completions.create(model="any", messages=ASKED, temperature=0.1)
    assert told.choices[0].message.content == "Until 31 March."
    assert (told.choices[0].finish_reason, told.object, told.model) == ("stop", "chat.completion", "fake")
    assert (told.usage.prompt_tokens, told.usage.completion_tokens, told.usage.total_tokens) == (7, 2, 9)
    assert told.sources[0]["sourcepage"]
    assert model.streams[-1].body["temperature"] == 0.1


def test_the_openai_client_gets_a_stream(client, model):
    model.script(answer("Until ", "31 March."), answer("Until ", "31 March."))
    told = list(client.chat.completions.create(model="any", messages=ASKED, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == "Until 31 March."
    assert told[-1].choices[0].finish_reason == "stop"
    assert told[-1].sources
    counted = list(
        client.chat.completions.create(
            model="any", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    assert (counted[-1].choices, counted[-1].usage.total_tokens) == ([], 9)


def test_the_openai_client_reads_texts_in_parts(client, model):
    parts = [{"type": "text", "text": QUESTION}, {"type": "text", "text": "In days."}]
    client.chat.completions.create(model="any", messages=[{"role": "user", "content": parts}])
    assert f"{QUESTION}\nIn days." in model.streams[-1].prompt


def test_the_openai_client_lists_the_model(client):
    assert [each.id for each in client.models.list()] == ["fake"]


def test_the_openai_client_raises_its_own_errors(client, model):
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="any", messages=ASKED, n=2)
    assert (bad.value.param, bad.value.type) == ("n", "invalid_request_error")
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="chs_wrong").chat.completions.create(model="any", messages=ASKED)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="chs_wrong").models.list()
    with pytest.raises(openai.NotFoundError):
        client.post("/nothing", cast_to=object)
    large = [{"role": "user", "content": "x" * 13_000_000}]
    with pytest.raises(openai.APIStatusError) as too_large:
        client.chat.completions.create(model="any", messages=large)
    assert (too_large.value.status_code, too_large.value.type) == (413, "invalid_request_error")
    model.script("rate_limited_long")
    with pytest.raises(openai.RateLimitError) as limited:
        client.chat.completions.create(model="any", messages=ASKED)
    assert int(limited.value.response.headers["Retry-After"]) > 0
    model.script("reset")
    with pytest.raises(openai.APIError, match="interrupted"):
        list(client.chat.completions.create(model="any", messages=ASKED, stream=True))
