#!/bin/sh
# Writes the secrets that compose.yaml names into deploy/secrets/. What is there stays as it is.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# Nobody else on this machine gets into the folder; a container sees single files, which its user must be able to read.
chmod 700 secrets

make() { # NAME TEXT
  [ -s "secrets/$1" ] && return
  printf '%s' "$2" >"secrets/$1"
  chmod 644 "secrets/$1"
}

random() {
  head -c 48 /dev/urandom | base64 | tr -d '+/=\n'
}

make secret_key "$(random)"
make postgres_password "$(random)"
make database_password "$(random)"
make s3_secret_key "$(random)"
make model_key none
# A database machine that vanishes without a word is noticed in half a minute.
make database_url "postgresql://chatsite:$(cat secrets/database_password)@postgres/chatsite?keepalives_idle=10&keepalives_interval=5&keepalives_count=4&tcp_user_timeout=30000"
