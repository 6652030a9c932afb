"""The envelope shared by the two protocols modelled on OpenAI's completions."""

from datetime import datetime

from chat.events import Json, Started, Usage


def envelope(started: Started, kind: str) -> Json:
    """The members around the choices; `kind` is `chat.completion` or `chat.completion.chunk`."""
    return {
        "id": f"chatcmpl-{started.answer_id}",
        "object": kind,
        "created": int(datetime.fromisoformat(started.created_at).timestamp()),
        "model": started.model,
        "system_fingerprint": None,
    }


def usage(counted: Usage | None) -> Json:
    """Token counts; zero if the model reported none."""
    prompt, completion = (counted.prompt, counted.completion) if counted else (0, 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
