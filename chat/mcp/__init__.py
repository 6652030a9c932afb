"""The server of the Model Context Protocol.

Through it, language models search, read and ask with a person's rights.
"""
