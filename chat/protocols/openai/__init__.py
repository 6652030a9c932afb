"""OpenAI's API, as its clients use it: chat completions, legacy completions, Responses, embeddings."""
