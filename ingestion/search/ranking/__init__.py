"""Finds and orders candidates for a question: term selection, plans, fusion, reranking."""
