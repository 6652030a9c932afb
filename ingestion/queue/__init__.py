"""The queue of documents to read: their order, and the jobs in the admin."""
