"""Names that must be known without loading a model."""

BUILT_IN_NAME = "wordllama-l2-supercat-256"
BUILT_IN_DIMENSIONS = 256
