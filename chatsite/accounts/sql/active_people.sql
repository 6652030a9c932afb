-- Which of these people can sign in, with the hashes of their passwords.
\set users '{1,2}'
SELECT id, password FROM accounts_user WHERE id = ANY(:'users') AND is_active;
