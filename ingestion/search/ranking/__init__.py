"""From the words of a question to candidates and their order: terms, plans, fusion, reranking."""
