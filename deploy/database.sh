#!/bin/sh
# Creates the site's role and its database. PostgreSQL's image runs this once, if its volume is empty. The
# role is not a superuser, because row-level security does not apply to superusers.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$(cat /run/secrets/database_password)" --username postgres <<'SQL'
CREATE ROLE chatsite LOGIN PASSWORD :'password';
CREATE DATABASE chatsite OWNER chatsite;
\connect chatsite
CREATE EXTENSION vector;
SQL
