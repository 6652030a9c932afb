-- How this person likes answers.
SELECT wish FROM accounts_user WHERE id = :'owner'
