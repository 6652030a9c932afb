-- The documents that were cited to this reader under a name. Some may have been deleted, or may no longer be
-- readable for the reader.
\set user_id 1
\set sourcefile guide.md
\set most 20

SELECT cited.document
FROM ingestion_citedname AS cited
WHERE cited.reader_id = :'user_id' AND cited.name = md5(:'sourcefile')::uuid
LIMIT :'most';
