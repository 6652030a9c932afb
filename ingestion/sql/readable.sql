    -- The access lists that the caller is on now: as themselves, through a group, or because everyone is (of guests: because they are).
    -- Arrays, so that each part is a look-up in an index also where joins in nested loops are off.
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.user_id = %(user_id)s
        AND (SELECT caller.is_active FROM accounts_user AS caller WHERE caller.id = %(user_id)s)
    UNION ALL
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.group_id = ANY(
            ARRAY(SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = %(user_id)s)
        )
        AND (SELECT caller.is_active FROM accounts_user AS caller WHERE caller.id = %(user_id)s)
    UNION ALL
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.user_id IS NULL
        AND entry.group_id IS NULL
        AND (
            SELECT caller.is_active AND (entry.guests OR caller.guest_until IS NULL)
            FROM accounts_user AS caller
            WHERE caller.id = %(user_id)s
        )
