"""The relay with which the site is compared: a bare FastAPI endpoint that forwards typed chunks.

python -m streaming.relay http://127.0.0.1:1234/v1      prints its port
"""

import json
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

application = FastAPI()


class Asked(BaseModel):
    messages: list[dict[str, Any]]


@application.post("/chat/stream")
async def relay(asked: Asked) -> StreamingResponse:
    return StreamingResponse(lines(asked.messages), media_type="application/json-lines")


async def lines(messages: list[dict[str, Any]]) -> AsyncIterator[str]:
    stream = await client.chat.completions.create(model="fast", messages=messages, stream=True)  # type: ignore[call-overload]
    async for chunk in stream:
        if chunk.choices and (content := chunk.choices[0].delta.content):
            yield json.dumps({"delta": {"content": content, "role": "assistant"}}, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    client = AsyncOpenAI(api_key="none", base_url=sys.argv[1], max_retries=0)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
