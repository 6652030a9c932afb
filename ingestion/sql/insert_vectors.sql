INSERT INTO ingestion_vector (space_id, document_id, passage_id, vector)
SELECT %(space_id)s, %(document_id)s, new.passage_id, new.vector::halfvec
FROM unnest(%(passage_ids)s::bigint[], %(vectors)s::text[]) AS new (passage_id, vector)
