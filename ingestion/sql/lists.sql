-- Once for a statement: an access list is read from here by each of its branches.
lists AS MATERIALIZED (
-- include: readable
)
