        -- Not the predicate (that follows) but a way to its rows: an array leads through the index of access lists.
        document.access_list_id = ANY(ARRAY(SELECT lists.access_list_id FROM lists))
