    -- The access lists that name the caller as a person, or a group that they are in now.
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    WHERE %(to_person)s AND entry.user_id = %(user_id)s
    UNION ALL
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    WHERE
        %(to_groups)s
        AND entry.group_id = ANY(
            ARRAY(SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = %(user_id)s)
        )
