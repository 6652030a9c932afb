"""The proof: the site's own test questions, asked before and after a change.

Each question has an expected document.
"""
