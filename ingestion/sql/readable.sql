    -- The access lists that the caller is on now: as themselves, through a group, or because everyone is (of guests: because they are).
    SELECT entry.access_list_id
    FROM ingestion_accessentry AS entry
    JOIN accounts_user AS caller ON caller.id = %(user_id)s AND caller.is_active
    WHERE
        entry.user_id = caller.id
        OR entry.guests
        OR (entry.user_id IS NULL AND entry.group_id IS NULL AND caller.guest_until IS NULL)
        OR entry.group_id IN (
            SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = caller.id
        )
