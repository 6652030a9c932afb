"""The REST API of documents and of searching them."""
