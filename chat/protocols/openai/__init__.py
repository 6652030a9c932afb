"""OpenAI's API: chat completions, legacy completions, Responses, and embeddings."""
