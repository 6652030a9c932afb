"""Environment settings that tests remove, so that those of a machine do not change their results."""

FOREIGN = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "CHAT_MODEL",
    "EMBEDDING_MODEL",
    "EMBEDDING_DIMENSIONS",
    "EMBEDDING_MODEL_DIR",
    "CHATSITE_DICTIONARY",
    "REDIS_URL",
    "RERANK_MODEL",
    "RERANK_BASE_URL",
    "RERANK_API_KEY",
    "OIDC_ISSUER",
    "OIDC_AUDIENCE",
    "CHATSITE_CORS_ORIGINS",
    "CHATSITE_LOGIN_REQUIRED",
)
