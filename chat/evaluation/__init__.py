"""Evaluations: questions with expected documents, which are asked before and after a change."""
