"""Former versions of documents: their texts, and how two texts differ."""
