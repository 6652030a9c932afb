"""From the words of a question to candidates and their order.

The steps are terms, plans, fusion and reranking.
"""
