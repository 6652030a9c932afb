"""The steps behind an answer, which the protocols call thoughts.

Apart from the earlier messages in a prompt, stored steps contain neither passages nor names of documents.
When steps are displayed, the passages and names that the reader may see are added.
"""

from collections.abc import Sequence
from typing import Any

from chat.events import Thought
from chat.llm import ChatModel
from chat.llm.chat_model import answer_instructions
from chat.quoting.quoting_model import QuotingModel
from chat.requests import Options
from ingestion.search.ranking.fusion import Mode
from ingestion.search.retrieval import SearchResult

from .run import AcceptedRun

NO_IMAGE_VECTORS = "This site has no vectors of images: those of the text are searched"
FIELDS = {"pages": f"{NO_IMAGE_VECTORS} instead.", "both": f"{NO_IMAGE_VECTORS}."}
NO_FIELDS = "“vector_fields” names none, so the question is searched by its words alone."


def mode(options: Options) -> Mode:
    """The search mode: only words if the request names no vector field."""
    return options.retrieval_mode if options.vector_fields else "text"


def query(options: Options, text: str, found: SearchResult) -> Thought:
    """The step of the search query."""
    props: dict[str, Any] = {
        "use_semantic_captions": options.captions,
        "use_semantic_ranker": options.ranker,
        "has_vector": found.mode != "text",
        "retrieval_mode": options.retrieval_mode,
        "top": options.top,
    }
    if described := filters(options):
        props["filter"] = described
    if options.scope not in ("", "all"):
        props["scope"] = options.scope
    if options.minimum_score:
        props["minimum_search_score"] = options.minimum_score
    if found.expanded:
        props["also_searched_for"] = found.expanded
    return Thought("Generated search query", text, props)


def filters(options: Options) -> str:
    """The filters of the request as text; empty without filters."""
    parts = []
    if options.include_category:
        parts.append(f"category is “{options.include_category}”")
    if options.exclude_category:
        parts.append(f"category is not “{options.exclude_category}”")
    kind, _, value = options.scope.partition(":")
    match kind:
        case "own":
            parts.append("added by the caller")
        case "folder":
            parts.append(f"folder is “{value}”")
        case "category":
            parts.append(f"category is “{value}”")
        case "document":
            parts.append(f"one of {value.count(',') + 1} chosen")
    grants = []
    if options.to_person:
        grants.append("the caller")
    if options.to_groups:
        grants.append("a group of the caller")
    if grants:
        parts.append(f"given to {' or '.join(grants)}")
    return ", ".join(parts)


def vector_fields(options: Options) -> list[Thought]:
    """The step for a request that names vector fields that the site lacks, or none at all."""
    if options.retrieval_mode == "text" or options.vector_fields == "text":
        return []
    return [Thought("Vector fields", FIELDS.get(options.vector_fields, NO_FIELDS))]


def page_images(options: Options, count: int) -> Thought:
    """The step about page images that the model got."""
    if not count:
        text = "None of the passages found has a page that can be shown as an image, so their text is given."
    elif options.pages == "images":
        text = f"Images of pages given to the model in place of their text: {count}."
    else:
        text = f"Images of pages given to the model beside their text: {count}."
    return Thought("Page images", text, {"gpt4v_input": options.pages})


def of_message(
    run: AcceptedRun, model: ChatModel, of_search: Sequence[Thought], *, is_prompted: bool = True
) -> tuple[Thought, ...]:
    """All steps before the text of a message; `is_prompted` includes the step with the prompt.

    For an answer made of quotations, the step “Prompt” has no messages, because no model gets a prompt.
    """
    options = run.request.options
    messages: list[str] = []
    if not isinstance(model, QuotingModel):
        messages = [f"{{'role': 'system', 'content': {answer_instructions(options.prompt_template)!r}}}"]
        messages += [
            f"{{'role': {turn.role!r}, 'content': {turn.content!r}}}" for turn in run.request.earlier
        ]
    props: dict[str, Any] = {"model": model.name, "temperature": options.temperature}
    if options.prompt_template:
        props["prompt_template"] = True
    thoughts = [
        Thought("Original user query", run.request.question),
        *of_search,
        *([Thought("Prompt", messages, props)] if is_prompted else []),
    ]
    ignored = list(options.unknown)
    if options.minimum_ranker_score and not options.ranker:
        ignored.append("minimum_reranker_score")
    if ignored:
        thoughts.append(Thought("Overrides without effect", ignored))
    return tuple(thoughts)
