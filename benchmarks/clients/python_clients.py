"""Calls a running site with published Python clients. Prints each call and its result as a line of JSON.

Run by run.py with the clients' own interpreter; CLIENT_BASE_URL and CLIENT_KEY name the site.
"""

import importlib.metadata
import json
import os
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import openai
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from llama_index.core.llms import ChatMessage
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

URL, KEY = os.environ["CLIENT_BASE_URL"], os.environ["CLIENT_KEY"]
QUESTION = "Until when can I use up last year's leave?"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
CITED = "employee-handbook.pdf"
USES = []


class Leave(BaseModel):
    """The schema of the structured answers."""

    days: int
    text: str


def use(client, what):
    """Register a check. It has passed if it returns a true value."""

    def register(function):
        USES.append((client, what, function))
        return function

    return register


def site():
    return openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)


def langchain(**settings):
    return ChatOpenAI(model="any", base_url=URL, api_key=KEY, max_retries=0, **settings)


def llama(**settings):
    return OpenAILike(model="any", api_base=URL, api_key=KEY, max_retries=0, **settings)


@use("openai", "chat completions, unstreamed")
def _():
    answer = site().chat.completions.create(model="any", messages=ASKED, max_tokens=200, stop=["END"])
    return CITED in answer.choices[0].message.content and answer.choices[0].finish_reason == "stop"


@use("openai", "chat completions, streamed")
def _():
    stream = site().chat.completions.create(
        model="any", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return CITED in text and chunks[-1].usage.total_tokens


@use("openai", "chat completions parsed by a schema")
def _():
    answer = site().chat.completions.parse(model="any", messages=ASKED, response_format=Leave)
    return CITED in answer.choices[0].message.parsed.text


@use("openai", "responses, two questions")
def _():
    first = site().responses.create(model="any", input=QUESTION, instructions="Be brief.")
    second = site().responses.create(model="any", input="Why?", previous_response_id=first.id)
    (part,) = first.output[0].content
    places = [note for note in part.annotations if part.text[note.index] == "["]
    return CITED in first.output_text and second.output_text and places and places == part.annotations


@use("openai", "responses, streamed")
def _():
    with site().responses.stream(model="any", input=QUESTION) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        return "".join(deltas) == stream.get_final_response().output_text


@use("openai", "responses parsed by a schema")
def _():
    return CITED in site().responses.parse(model="any", input=QUESTION, text_format=Leave).output_parsed.text


@use("openai", "a response in the background, resumed")
def _():
    stream = site().responses.create(model="any", input=QUESTION, background=True, stream=True)
    seen = []
    for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    stream.close()
    named = seen[0].response.id
    rest = list(site().responses.retrieve(named, stream=True, starting_after=seen[-1].sequence_number))
    deltas = [event.delta for event in [*seen, *rest] if event.type == "response.output_text.delta"]
    return "".join(deltas) == rest[-1].response.output_text == site().responses.retrieve(named).output_text


@use("openai", "a response in the background, polled, cancelled, deleted")
def _():
    answer = site().responses.create(model="any", input=QUESTION, background=True)
    site().responses.cancel(answer.id)
    deadline = time.monotonic() + 20
    while site().responses.retrieve(answer.id).status in ("queued", "in_progress"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    site().responses.delete(answer.id)
    try:
        site().responses.retrieve(answer.id)
    except openai.NotFoundError:
        return True


@use("openai", "embeddings")
def _():
    answer = site().embeddings.create(model="any", input=["leave", "canteen"])
    return len(answer.data) == 2 and len(answer.data[0].embedding) == 256


@use("openai", "an unsupported member is refused by name")
def _():
    try:
        tools = [{"type": "function", "function": {"name": "a", "parameters": {}}}]
        site().chat.completions.create(model="any", messages=ASKED, tools=tools, tool_choice="required")
    except openai.BadRequestError as error:
        return error.param == "tool_choice"


@use("langchain-openai", "a system prompt, unstreamed")
def _():
    return CITED in langchain().invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)]).content


@use("langchain-openai", "a system prompt, streamed")
def _():
    pieces = langchain().stream([SystemMessage("Be brief."), HumanMessage(QUESTION)])
    return CITED in "".join(piece.content for piece in pieces)


@use("langchain-openai", "with_structured_output")
def _():
    return CITED in langchain().with_structured_output(Leave).invoke(QUESTION).text


@use("langchain-openai", "with_structured_output, json_mode")
def _():
    return CITED in langchain().with_structured_output(Leave, method="json_mode").invoke(QUESTION).text


@use("langchain-openai", "with_structured_output, function_calling: refused by name")
def _():
    try:
        langchain().with_structured_output(Leave, method="function_calling").invoke(QUESTION)
    except openai.BadRequestError as error:
        return error.param == "tool_choice"


@use("langchain-openai", "responses API")
def _():
    answer = langchain(use_responses_api=True).invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)])
    return CITED in answer.text and any(part.get("annotations") for part in answer.content)


@use("langchain-openai", "responses API, with_structured_output")
def _():
    model = langchain(use_responses_api=True)
    return CITED in model.with_structured_output(Leave).invoke(QUESTION).text


@use("langchain-openai", "embeddings (check_embedding_ctx_length=False)")
def _():
    model = OpenAIEmbeddings(base_url=URL, api_key=KEY, check_embedding_ctx_length=False)
    return len(model.embed_query("leave")) == 256


@use("llama-index-llms-openai-like", "default settings: complete")
def _():
    return CITED in llama().complete(QUESTION).text


@use("llama-index-llms-openai-like", "default settings: chat")
def _():
    messages = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=QUESTION)]
    return CITED in llama().chat(messages).message.content


@use("llama-index-llms-openai-like", "default settings: stream_chat")
def _():
    pieces = llama().stream_chat([ChatMessage(role="user", content=QUESTION)])
    return CITED in "".join(piece.delta or "" for piece in pieces)


@use("llama-index-llms-openai-like", "is_chat_model=True")
def _():
    messages = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=QUESTION)]
    return CITED in llama(is_chat_model=True).chat(messages).message.content


@use("llama-index-embeddings-openai", "embeddings")
def _():
    return len(OpenAIEmbedding(api_base=URL, api_key=KEY).get_text_embedding_batch(["leave"])[0]) == 256


@use("litellm", "completion, unstreamed")
def _():
    answer = litellm.completion("openai/any", api_base=URL, api_key=KEY, messages=ASKED, max_tokens=200)
    return CITED in answer.choices[0].message.content


@use("litellm", "completion, streamed")
def _():
    chunks = litellm.completion("openai/any", api_base=URL, api_key=KEY, messages=ASKED, stream=True)
    return CITED in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@use("litellm", "completion by a schema")
def _():
    answer = litellm.completion(
        "openai/any", api_base=URL, api_key=KEY, messages=ASKED, response_format=Leave
    )
    return CITED in Leave.model_validate_json(answer.choices[0].message.content).text


@use("litellm", "responses")
def _():
    answer = litellm.responses(model="openai/any", api_base=URL, api_key=KEY, input=QUESTION)
    return CITED in answer.output[0].content[0].text


@use("litellm", "embedding")
def _():
    answer = litellm.embedding("openai/any", api_base=URL, api_key=KEY, input=["leave"])
    return len(answer.data[0]["embedding"]) == 256


def main():
    for client, what, function in USES:
        try:
            passed, said = bool(function()), ""
        except Exception as error:
            passed, said = False, f"{type(error).__name__}: {error}"[:300]
        version = importlib.metadata.version(client)
        print(
            json.dumps({"client": f"{client} {version}", "what": what, "passed": passed, "said": said}),
            flush=True,
        )


if __name__ == "__main__":
    main()
