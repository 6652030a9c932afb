"""Analyses what a question asks for: parts, type of answer, amounts, people and conditions."""
