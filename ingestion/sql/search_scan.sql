-- Where few passages may be read: all of them are looked at, by their words and by their vectors.
WITH
-- include: lists
,

-- include: documents
,

-- include: words
,

-- include: hits_by_document
,

-- include: weights
,

-- include: nearest_exact
,

-- include: candidates
