"""Messages about answers that failed, by error code. Without Django, because protocols use them, too."""

FAILURE_TEXTS = {
    "rate_limited": "The language model accepts no more questions at the moment.",
    "upstream_unavailable": "The language model is not responding.",
    "upstream_timeout": "The language model took too long to answer.",
    "upstream_protocol": "The language model sent something that cannot be read.",
    "upstream_misconfigured": "The language model refuses this site’s settings.",
    "context_overflow": "The question and its sources are too long for the language model.",
    "content_filter": "Your message contains content that was flagged by the OpenAI content filter.",
    "format_refused": "The language model does not write answers in this format.",
    "length_refused": "The language model does not accept this token limit.",
    "empty_answer": "The language model sent an empty answer.",
    "interrupted": "The answer was interrupted.",
    "storage_full": "There is no room on the server. Tell the operator of the site.",
}
OTHER_FAILURE = "The answer could not be written."
