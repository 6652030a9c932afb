"""The documents that wait to be read: their order, and the jobs as the admin shows them."""
