-- Select those of the given API keys that are valid at a moment, by the same rule as `usable` in
-- chatsite/accounts/models/keys.py.
\set keys '{1,2}'
\set now '2026-01-01'
SELECT key.id, key.user_id, key.acts_for_others
FROM accounts_apikey AS key
JOIN accounts_user AS owner ON owner.id = key.user_id
WHERE
    key.id = ANY(:'keys')
    AND key.revoked_at IS NULL
    AND (key.expires_at IS NULL OR key.expires_at > :'now')
    AND owner.is_active;
