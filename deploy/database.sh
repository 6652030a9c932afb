#!/bin/sh
# Run once by PostgreSQL's image, when its volume is empty: the site's role, which is no superuser, because
# row-level security binds no superuser, and its database.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$(cat /run/secrets/database_password)" --username postgres <<'SQL'
CREATE ROLE chatsite LOGIN PASSWORD :'password';
CREATE DATABASE chatsite OWNER chatsite;
\connect chatsite
CREATE EXTENSION vector;
SQL
