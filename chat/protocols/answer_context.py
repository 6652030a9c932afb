"""Members that several protocols share, such as `data_points`, `thoughts` and `verified`."""

from collections.abc import Sequence
from datetime import datetime
from html import escape

from chat.events import ContextReady, Json, Started, Thought, Usage
from chat.sources import SourceView
from chat.statements import Statement, to_api

RESULTS_BEFORE = "Prompt"  # the search results are listed before this step


def context(found: ContextReady) -> Json:
    """The context of a response; `found` must contain only what the reader may see."""
    points: Json = {
        "text": [_data_point(source) for source in found.sources],
        # Labels that an answer may cite. Since September 2025, front ends turn only these into links.
        "citations": list(dict.fromkeys(source.label for source in found.sources)),
    }
    if found.images:
        points["images"] = [{"url": image.url, "detail": "auto"} for image in found.images]
    thoughts: list[Json] = []
    for thought in found.thoughts:
        if thought.title == RESULTS_BEFORE:
            thoughts.append(_thought(Thought("Results", [_result(source) for source in found.sources])))
            question = str(found.thoughts[0].description)
            lines = [_data_point(source) for source in found.sources if source.given != "image"]
            lines += [f"{image.label}: the page in an image" for image in found.images]
            text = repr("\n".join([f"{question}\n\nSources:", *lines]))
            messages = [*thought.description, f"{{'role': 'user', 'content': {text}}}"]
            thoughts.append(_thought(Thought(thought.title, messages, thought.props)))
        else:
            thoughts.append(_thought(thought))
    return {"data_points": points, "thoughts": thoughts, **verified(found)}


def verified(found: ContextReady | None) -> Json:
    """The member `verified`: by whom, until when, and for which question, if another was asked."""
    if found is None or found.verified is None:
        return {}
    mark = {"by": found.verified.by, "until": found.verified.until}
    if found.verified.question:
        mark["question"] = found.verified.question
    return {"verified": mark}


def followups(questions: tuple[str, ...]) -> Json:
    return {"followup_questions": list(questions)}


def verification(statements: Sequence[Statement], grade: str = "") -> Json:
    """The members with the verified statements and the grade. Positions refer to the text that was sent."""
    return {"verification": to_api(statements), **graded(grade)}


def graded(grade: str) -> Json:
    """The member `grade`: how certainly quotations answer the question.

    Absent if a model answered, or if a cited source is withheld from the reader.
    """
    return {"grade": grade} if grade else {}


def delta(content: str | None = None, role: str | None = None) -> Json:
    """A delta with all members that the specifications list."""
    return {"content": content, "function_call": None, "role": role, "tool_calls": None}


def message(content: str) -> Json:
    """A complete message with all members that the specifications list."""
    return delta(content, "assistant")


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


def _data_point(source: SourceView) -> str:
    return f"{source.label}: {' '.join(source.model_text.split())}"


def _thought(thought: Thought) -> Json:
    # Sort the properties, so that the response is the same whether they come from the engine or the database.
    props = dict(sorted(thought.props.items())) if thought.props else None
    return {"title": thought.title, "description": thought.description, "props": props}


def _result(source: SourceView) -> Json:
    captions: list[Json] = []
    for caption in source.captions:
        # Pieces of the caption as HTML, with words of the question in `<em>`.
        parts: list[str] = []
        end = 0
        for start, stop in caption.marks:
            parts += [escape(caption.text[end:start]), f"<em>{escape(caption.text[start:stop])}</em>"]
            end = stop
        parts.append(escape(caption.text[end:]))
        captions.append({
            "text": caption.text,
            "highlights": "".join(parts),
            "additional_properties": {},
        })  # fmt: skip
    result: Json = {
        "id": f"file-{source.document_id}-passage-{source.passage_id}",
        "content": source.content,
        "embedding": None,
        "imageEmbedding": None,
        "category": source.category or None,
        "sourcepage": source.label,
        "sourcefile": source.sourcefile,
        "oids": [],
        "groups": [],
        "captions": captions,
        "score": source.score,
    }
    if source.ranker_score is not None:
        result["reranker_score"] = source.ranker_score
    return result
