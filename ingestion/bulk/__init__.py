"""Changes of many documents at once.

Documents are chosen in the admin; a worker changes each of them, with a result of its own.
"""
