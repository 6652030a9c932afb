-- The documents that were cited to this reader under that name, of which some may be gone or closed by now.
SELECT cited.document
FROM ingestion_citedname AS cited
WHERE cited.reader_id = %(user_id)s AND cited.name = md5(%(sourcefile)s)::uuid
LIMIT %(most)s
