"""OpenAI's API, as its clients use it.

It has chat completions, legacy completions, Responses, and embeddings.
"""
