"""Events of one run for clients that resume a stream, in a format of our own.

Each chunk has a number (`seq`) and a `type`. Text belongs to the message that began last. The last chunk
contains all messages in full, for clients that missed the beginning. Of the other protocols, only OpenAI's
Responses can resume a stream.
"""

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    FollowUps,
    Json,
    MessageDone,
    MessageStarted,
    Rechecked,
    RunResult,
    Searching,
    Started,
    TextDelta,
    Thinking,
    TitleChanged,
    Usage,
)

from .answer_context import context, verification


def chunk(number: int, event: Event) -> Json:
    """The chunk for an event. The caller adds the members of :func:`outcome` to the last chunk."""
    kind, members = _kind_and_members(event)
    return {"seq": number, "type": kind} | members


def waiting(number: int) -> Json:
    """A keep-alive chunk; `number` is the number of the last event."""
    return {"seq": number, "type": "waiting"}


def outcome(end: Finished | Failed, result: RunResult) -> Json:
    """The members of the last chunk: the run's outcome and its messages."""
    error: Json | None = None
    if isinstance(end, Failed):
        error = {"code": end.code, "message": errors.words(end.code), "request_id": end.request_id}
        if end.retry_after is not None:
            error["retry_after"] = end.retry_after
    return {
        "state": end.state,
        "error": error,
        "messages": [
            {
                "id": message.message_id,
                "agent": message.agent,
                "content": message.text,
                "finish_reason": message.done.finish_reason if message.done else None,
                "citations": list(message.done.citations) if message.done else [],
                **(
                    verification(message.done.verification, message.done.grade)
                    if message.done
                    else verification(())
                ),
                "context": context(message.context) if message.context else None,
            }
            for message in result.messages
        ],
        "followup_questions": list(result.followups),
    }


def _kind_and_members(event: Event) -> tuple[str, Json]:
    match event:
        case Started():
            return "started", {
                "run": event.run_id,
                "conversation": event.conversation_id,
                "question": event.question_id,
                "answer": event.answer_id,
                "created_at": event.created_at,
                "model": event.model,
            }
        case Searching(readable, awaited):
            return "searching", {"documents": readable, **({"awaited": awaited} if awaited else {})}
        case ContextReady():
            return "context", {"message": event.message_id, **context(event)}
        case MessageStarted(message_id, agent, created_at):
            return "message", {"message": message_id, "agent": agent, "created_at": created_at}
        case Thinking():
            return "thinking", {}
        case TextDelta(text):
            return "text", {"text": text}
        case MessageDone(reason, citations):
            found = verification(event.verification, event.grade)
            return "message_end", {"finish_reason": reason, "citations": list(citations), **found}
        case Rechecked(statements):
            return "rechecked", verification(statements)
        case FollowUps(questions):
            return "followups", {"questions": list(questions)}
        case TitleChanged(title):
            return "title", {"title": title}
        case Usage(prompt, completion):
            return "usage", {"prompt_tokens": prompt, "completion_tokens": completion}
        case Finished() | Failed():
            return "end", {}
