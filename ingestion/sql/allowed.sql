        -- The documents that the caller may read and asks for: every plan of search holds this text, whole,
        -- beside lists.sql. IS TRUE keeps the lists in a hash; as a join they would be read anew for each document.
        document.version > 0
        AND (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE
        AND (%(include_category)s = '' OR document.category = %(include_category)s)
        AND (%(exclude_category)s = '' OR document.category <> %(exclude_category)s)
        -- What the caller asks for beside their rights only takes away from what these allow.
        AND (
            NOT (%(to_person)s OR %(to_groups)s)
            OR (%(to_person)s AND document.owner_id = %(user_id)s)
            OR (document.access_list_id IN (
-- include: granted
            )) IS TRUE
        )
